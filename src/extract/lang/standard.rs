//! Names that belong to a language and its standard library.
//!
//! A name that nothing in the repository makes visible is proven to be outside only if it is one of these, or if no file
//! of the repository defines it. So the lists need not be complete: a name that is missing has candidates where the
//! repository defines it, too.

/// What belongs to a language and its standard library.
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// Names that are visible in every file, separated by blanks.
    pub names: &'static str,
    /// Names of macros and attributes, if these are apart from other names.
    pub macros: &'static str,
    /// First segments of the names of modules, separated by blanks.
    pub modules: &'static str,
}

impl Standard {
    pub(super) const NONE: Self = Self {
        names: "",
        macros: "",
        modules: "",
    };

    pub(super) const C: Self = Self {
        names: "\
            DIR FILE NULL abort abs accept access acos alarm aligned_alloc asin assert atan atan2 atexit atof atoi \
            atol atoll bind bsearch calloc ceil clearerr clock close closedir connect cos cosh ctime difftime dup dup2 \
            errno exit exp fabs fclose fcntl fdopen feof ferror fflush fgetc fgets fileno floor fmod fopen fork \
            fprintf fputc fputs fread free freopen frexp fscanf fseek fseeko fstat ftell ftruncate fwrite getc getchar \
            getcwd getenv gethostbyname getopt getpid gettimeofday gmtime htonl htons ioctl isalnum isalpha isatty \
            iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit kill ldexp listen localtime log \
            log10 log2 longjmp lseek lstat malloc mblen memchr memcmp memcpy memmove memset mkdir mkstemp mktime mmap \
            modf munmap ntohl ntohs offsetof open opendir perror pipe poll pow printf pthread_create pthread_join \
            pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock putc putchar puts qsort \
            raise rand read readdir realloc recv remove rename rewind rmdir scanf select send setenv setjmp setsockopt \
            setvbuf sigaction signal sin sinh sizeof sleep snprintf socket sprintf sqrt srand sscanf stat std \
            strcasecmp strcat strchr strcmp strcpy strcspn strdup strerror strftime strlen strncasecmp strncat strncmp \
            strncpy strndup strnlen strpbrk strrchr strsep strspn strstr strtod strtof strtok strtok_r strtol strtoll \
            strtoul strtoull tan tanh time tmpfile tolower toupper ungetc unlink usleep va_arg va_copy va_end va_start \
            vfprintf vprintf vsnprintf vsprintf waitpid wcslen write",
        macros: "",
        modules: "",
    };

    pub(super) const PYTHON: Self = Self {
        names: "\
            ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError \
            BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError \
            ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning \
            EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError FloatingPointError \
            FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError \
            InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError \
            ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError \
            OverflowError PendingDeprecationWarning PermissionError ProcessLookupError RecursionError \
            ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration \
            SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError \
            UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning \
            ValueError Warning ZeroDivisionError __build_class__ __debug__ __doc__ __file__ __import__ \
            __loader__ __name__ __package__ __path__ __spec__ abs aiter all anext any ascii bin bool breakpoint \
            bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod \
            enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id \
            input int isinstance issubclass iter len license list locals map max memoryview min next object oct \
            open ord pow print property quit range repr reversed round set setattr slice sorted staticmethod str \
            sum super tuple type vars zip",
        macros: "",
        modules: "\
            __future__ _thread abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 \
            calendar cmath cmd code codecs codeop collections colorsys compileall concurrent configparser \
            contextlib contextvars copy copyreg cProfile csv ctypes curses dataclasses datetime dbm decimal \
            difflib dis doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput \
            fnmatch fractions ftplib functools gc getopt getpass gettext glob graphlib grp gzip hashlib heapq \
            hmac html http imaplib importlib inspect io ipaddress itertools json keyword linecache locale \
            logging lzma mailbox marshal math mimetypes mmap modulefinder msvcrt multiprocessing netrc ntpath \
            numbers operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix \
            posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc queue quopri random re readline \
            reprlib resource runpy sched secrets select selectors shelve shlex shutil signal site smtplib \
            socket socketserver sqlite3 ssl stat statistics string stringprep struct subprocess symtable sys \
            sysconfig syslog tarfile tempfile termios textwrap threading time timeit tkinter token tokenize \
            tomllib trace traceback tracemalloc tty turtle types typing unicodedata unittest urllib uuid venv \
            warnings wave weakref webbrowser winreg winsound wsgiref xml xmlrpc zipapp zipfile zipimport zlib \
            zoneinfo",
    };

    pub(super) const JAVASCRIPT: Self = Self {
        names: "\
            AbortController AbortSignal AggregateError Array ArrayBuffer AsyncGenerator AsyncIterable \
            AsyncIterator Atomics Awaited BigInt BigInt64Array BigUint64Array Blob Boolean Buffer Capitalize \
            ConstructorParameters DataView Date Document Element Error EvalError Event EventTarget Exclude \
            Extract FinalizationRegistry Float32Array Float64Array FormData Function Generator HTMLElement \
            Headers Infinity InstanceType Int16Array Int32Array Int8Array Intl Iterable IterableIterator \
            Iterator JSON Lowercase Map Math NaN Node NonNullable Number Object Omit OmitThisParameter \
            Parameters Partial Pick Promise PromiseLike PropertyKey Proxy RangeError Readonly ReadonlyArray \
            ReadonlyMap ReadonlySet Record ReferenceError Reflect RegExp Request Required Response ReturnType \
            Set SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder ThisParameterType \
            ThisType TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array \
            Uint8ClampedArray Uncapitalize Uppercase WeakMap WeakRef WeakSet Window XMLHttpRequest \
            __dirname __filename any arguments bigint boolean clearImmediate clearInterval clearTimeout console \
            decodeURI decodeURIComponent document encodeURI encodeURIComponent escape eval exports global \
            globalThis isFinite isNaN localStorage location module navigator never null number object parseFloat \
            parseInt process queueMicrotask require sessionStorage setImmediate setInterval setTimeout string \
            structuredClone symbol undefined unescape unknown void window",
        macros: "",
        modules: "\
            assert async_hooks bun buffer child_process cluster console constants crypto dgram \
            diagnostics_channel dns domain events fs http http2 https inspector module net os path perf_hooks \
            process punycode querystring readline repl stream string_decoder sys test timers tls trace_events \
            tty url util v8 vm wasi worker_threads zlib",
    };

    pub(super) const RUST: Self = Self {
        names: "\
            AsMut AsRef Box Clone Copy Debug Default DoubleEndedIterator Drop Eq Err ExactSizeIterator Extend Fn \
            FnMut FnOnce From FromIterator Hash Into IntoIterator Iterator None Ok Option Ord PartialEq \
            PartialOrd Result Send Sized Some String Sync ToOwned ToString TryFrom TryInto Unpin Vec alloc bool \
            char core f32 f64 i128 i16 i32 i64 i8 isize proc_macro std str u128 u16 u32 u64 u8 usize",
        macros: "\
            Clone Copy Debug Default Eq Hash Ord PartialEq PartialOrd allow assert assert_eq assert_ne bench cfg \
            cfg_attr cold column compile_error concat dbg debug_assert debug_assert_eq debug_assert_ne deny \
            deprecated derive doc env eprint eprintln expect export_name feature file forbid format format_args \
            global_allocator ignore include include_bytes include_str inline line link link_name macro_export \
            macro_use matches module_path must_use naked no_mangle no_std non_exhaustive option_env panic path \
            print println proc_macro proc_macro_attribute proc_macro_derive repr rustfmt should_panic stringify \
            target_feature test thread_local todo track_caller unimplemented unreachable used vec warn write \
            writeln",
        modules: "alloc core proc_macro std test",
    };

    pub(super) const JAVA: Self = Self {
        names: "\
            AbstractMethodError Appendable ArithmeticException ArrayIndexOutOfBoundsException \
            ArrayStoreException AssertionError AutoCloseable Boolean Byte CharSequence Character Class \
            ClassCastException ClassLoader ClassNotFoundException CloneNotSupportedException Cloneable \
            Comparable Deprecated Double Enum Error Exception Float FunctionalInterface \
            IllegalAccessException IllegalArgumentException IllegalMonitorStateException \
            IllegalStateException IndexOutOfBoundsException InheritableThreadLocal InstantiationException \
            Integer InterruptedException Iterable LinkageError Long Math NegativeArraySizeException \
            NoClassDefFoundError NoSuchFieldException NoSuchMethodException NullPointerException Number \
            NumberFormatException Object OutOfMemoryError Override Package Process ProcessBuilder Readable \
            Record ReflectiveOperationException Runnable Runtime RuntimeException SafeVarargs \
            SecurityException SecurityManager Short StackOverflowError StackTraceElement StrictMath String \
            StringBuffer StringBuilder StringIndexOutOfBoundsException SuppressWarnings System Thread \
            ThreadGroup ThreadLocal Throwable UnsupportedOperationException VirtualMachineError Void boolean \
            byte char double float int long short void",
        macros: "",
        modules: "java javax jdk",
    };

    pub(super) const KOTLIN: Self = Self {
        names: "\
            Any Array ArrayList AutoCloseable Boolean BooleanArray Byte ByteArray Char CharArray CharSequence \
            Closeable Collection Comparable Comparator Double DoubleArray Enum Error Exception Float FloatArray \
            HashMap HashSet IllegalArgumentException IllegalStateException IndexOutOfBoundsException Int IntArray \
            IntRange Iterable Iterator JvmField JvmName JvmOverloads JvmStatic Lazy LinkedHashMap LinkedHashSet List \
            Long LongArray LongRange Map MutableCollection MutableIterable MutableIterator MutableList MutableMap \
            MutableSet NoSuchElementException Nothing NullPointerException Number NumberFormatException OptIn Pair \
            PublishedApi Regex Result Runnable RuntimeException Sequence Set Short ShortArray String StringBuilder \
            Suppress Throwable Throws Triple UByte UInt ULong UShort Unit UnsupportedOperationException arrayListOf \
            arrayOf assert buildList buildMap buildString check checkNotNull emptyList emptyMap emptySet error \
            hashMapOf hashSetOf lazy lazyOf linkedMapOf listOf listOfNotNull mapOf maxOf minOf mutableListOf \
            mutableMapOf mutableSetOf print println repeat require requireNotNull sequence sequenceOf setOf",
        macros: "",
        modules: "java javax jdk kotlin",
    };

    pub(super) const SCALA: Self = Self {
        names: "\
            Any AnyRef AnyVal Array BigDecimal BigInt Boolean Byte Char Double Either Exception Float Function \
            IllegalArgumentException IllegalStateException IndexedSeq Int Integer Iterable Iterator Left List Long \
            Map Nil None NoSuchElementException Nothing Null NullPointerException Numeric Object Option Ordered \
            Ordering Override PartialFunction Predef Product Range Right RuntimeException Seq Serializable Set \
            Short Some Stream String StringBuilder StringContext System Thread Throwable Unit \
            UnsupportedOperationException Vector assert assume classOf identity implicitly print printf println require \
            summon tailrec",
        macros: "",
        modules: "java javax jdk scala",
    };

    pub(super) const PHP: Self = Self {
        names: "\
            ArgumentCountError ArithmeticError ArrayAccess ArrayIterator ArrayObject AssertionError Attribute \
            BackedEnum BadFunctionCallException BadMethodCallException Closure Countable DOMDocument DateInterval \
            DatePeriod DateTime DateTimeImmutable DateTimeInterface DateTimeZone DirectoryIterator DivisionByZeroError \
            DomainException Error ErrorException Exception Fiber Generator InvalidArgumentException Iterator \
            IteratorAggregate JsonException JsonSerializable LengthException LogicException OutOfBoundsException \
            OutOfRangeException OverflowException PDO RangeException RecursiveIteratorIterator ReflectionClass \
            ReflectionException ReflectionFunction ReflectionMethod ReflectionNamedType ReflectionObject \
            ReflectionProperty RuntimeException SplFileInfo SplObjectStorage SplStack Stringable Throwable Traversable \
            TypeError UnderflowException UnexpectedValueException UnitEnum ValueError WeakMap WeakReference abs array \
            array_change_key_case array_chunk array_column array_combine array_diff array_diff_key array_fill \
            array_fill_keys array_filter array_flip array_intersect array_intersect_key array_is_list array_key_exists \
            array_key_first array_key_last array_keys array_map array_merge array_merge_recursive array_pad array_pop \
            array_product array_push array_rand array_reduce array_replace array_reverse array_search array_shift \
            array_slice array_splice array_sum array_unique array_unshift array_values array_walk arsort asort \
            base64_decode base64_encode basename bin2hex bool call_user_func call_user_func_array callable ceil chdir \
            chmod chr class_exists clearstatcache compact constant copy count ctype_alnum ctype_alpha ctype_digit \
            ctype_space ctype_upper curl_exec curl_init curl_setopt current date date_default_timezone_get \
            date_default_timezone_set debug_backtrace define defined dirname end error_get_last error_log \
            error_reporting escapeshellarg exec explode extension_loaded extract false fclose feof fflush fgets file \
            file_exists file_get_contents file_put_contents fileperms filesize filter_var float floatval flock floor \
            fopen fread fseek fstat func_get_args function_exists fwrite gc_collect_cycles get_class get_object_vars \
            get_parent_class getcwd getenv gethostname getmypid gettype glob hash hash_equals hash_hmac header \
            headers_sent hex2bin hrtime html_entity_decode htmlspecialchars http_build_query iconv implode in_array \
            ini_get ini_set int intdiv interface_exists intval is_a is_array is_bool is_callable is_dir is_file \
            is_float is_int is_iterable is_null is_numeric is_object is_readable is_resource is_scalar is_string \
            is_subclass_of is_writable iterable iterator_to_array join json_decode json_encode json_last_error \
            json_last_error_msg key krsort ksort lcfirst ltrim max mb_check_encoding mb_convert_case \
            mb_convert_encoding mb_detect_encoding mb_internal_encoding mb_strlen mb_strpos mb_strtolower \
            mb_strtoupper mb_substr md5 memory_get_peak_usage memory_get_usage method_exists microtime min mixed mkdir \
            mt_rand never next nl2br null number_format ob_end_clean ob_get_clean ob_start object openssl_encrypt ord \
            parse_str parse_url pathinfo php_sapi_name php_uname phpversion preg_last_error preg_match preg_match_all \
            preg_quote preg_replace preg_replace_callback preg_split print_r printf property_exists rand random_bytes \
            random_int range rawurlencode realpath register_shutdown_function rename reset restore_error_handler \
            restore_exception_handler rmdir round rsort rtrim scandir serialize set_error_handler \
            set_exception_handler sha1 sleep sort spl_autoload_register spl_object_hash spl_object_id sprintf sscanf \
            stdClass str_contains str_ends_with str_pad str_repeat str_replace str_split str_starts_with strcasecmp \
            strcmp strcspn stream_context_create stream_get_contents string stripos strlen strncmp strpos strrev \
            strrpos strspn strstr strtolower strtotime strtoupper strtr strval substr substr_count substr_replace \
            sys_get_temp_dir tempnam time touch trait_exists trigger_error trim true uasort ucfirst ucwords uksort \
            umask uniqid unlink unserialize urldecode urlencode usleep usort utf8_decode utf8_encode var_dump \
            var_export version_compare void vsprintf",
        macros: "",
        modules: "",
    };

    pub(super) const LUA: Self = Self {
        names: "\
            _G _VERSION assert collectgarbage coroutine debug dofile error getmetatable io ipairs load loadfile \
            loadstring math next os package pairs pcall print rawequal rawget rawlen rawset require select \
            setmetatable string table tonumber tostring type unpack utf8 vim xpcall",
        macros: "",
        modules: "",
    };

    pub(super) const ELIXIR: Self = Self {
        names: "\
            abs apply assert assert_in_delta assert_raise assert_receive assert_received binary_part binary_slice \
            binding bit_size byte_size catch_error catch_exit catch_throw ceil destructure div elem exit floor flunk \
            function_exported? get_and_update_in get_in hd inspect is_atom is_binary is_bitstring is_boolean \
            is_exception is_float is_function is_integer is_list is_map is_map_key is_nil is_non_struct_map is_number \
            is_pid is_port is_reference is_struct is_tuple length macro_exported? make_ref map_size match? max min node \
            on_exit pop_in put_elem put_in raise refute refute_in_delta refute_receive refute_received rem reraise \
            round self send sigil_c sigil_r sigil_s sigil_w spawn spawn_link spawn_monitor start_supervised \
            stop_supervised struct tap then throw tl to_charlist to_string to_timeout trunc tuple_size update_in",
        macros: "",
        modules: "\
            Access Agent Application ArgumentError ArithmeticError Atom BadArityError BadBooleanError \
            BadFunctionError BadMapError BadStructError Base Behaviour Bitwise Calendar CaseClauseError Code \
            CondClauseError Config DateTime Date Dict Duration DynamicSupervisor EEx Enum ErlangError ExUnit \
            Exception File Float Function FunctionClauseError GenEvent GenServer HashDict HashSet IEx IO Inspect \
            Integer JSON Kernel KeyError Keyword List Logger Macro Map MapSet MatchError Mix Module NaiveDateTime \
            Node OptionParser PartitionSupervisor Path Port Process Protocol Range Record Regex Registry \
            RuntimeError Set Stream String StringIO Supervisor SyntaxError System SystemLimitError Task Time \
            TokenMissingError TryClauseError Tuple URI UndefinedFunctionError UnicodeConversionError Version \
            WithClauseError",
    };

    pub(super) const RUBY: Self = Self {
        names: "\
            abort alias_method at_exit attr_accessor attr_reader attr_writer autoload binding block_given caller catch \
            define_method eval exit extend fail format freeze gets include include_class instance_variable_get \
            instance_variable_set is_a lambda load loop module_function nil open p pp prepend print printf private \
            private_class_method private_constant proc protected public public_send putc puts raise rand refine \
            require require_relative respond_to send sleep sprintf srand system tap throw using warn",
        macros: "",
        modules: "\
            English abbrev base64 benchmark bigdecimal cgi csv date delegate digest erb etc expect fcntl fiddle fileutils \
            find forwardable getoptlong io ipaddr json logger matrix minitest monitor net objspace observer open-uri open3 \
            openssl optparse ostruct pathname pp prettyprint prime pstore psych pty rake rbconfig readline resolv ripper \
            rubygems securerandom set shellwords singleton socket stringio strscan syslog tempfile time timeout tmpdir \
            tsort uri weakref yaml zlib",
    };

    pub(super) const SWIFT: Self = Self {
        names: "\
            Any AnyClass AnyHashable AnyObject Array ArraySlice Bool Character ClosedRange Codable CodingKey Data Date \
            Decodable Decoder Dictionary Double Encodable Encoder Error Float Float32 Float64 Hashable Hasher Int \
            Int16 Int32 Int64 Int8 Never Optional Range Sendable Sequence Set StaticString String Substring UInt \
            UInt16 UInt32 UInt64 UInt8 URL UUID UnsafeMutablePointer UnsafePointer UnsafeRawPointer Void abs assert \
            assertionFailure debugPrint fatalError max min precondition preconditionFailure print swap type zip",
        macros: "",
        modules: "\
            AppKit CoreFoundation CoreGraphics Darwin Dispatch Foundation FoundationNetworking Glibc Musl Swift SwiftUI \
            Testing UIKit WinSDK XCTest os",
    };

    pub(super) const DART: Self = Self {
        names: "\
            BigInt DateTime Duration Error Exception Function Future Iterable Iterator List Map Never Null Object \
            Pattern RegExp Set StackTrace Stream String StringBuffer Symbol Type Uri bool double dynamic int num void",
        macros: "",
        modules: "dart",
    };

    pub(super) const CSHARP: Self = Self {
        names: "\
            bool byte char decimal double dynamic float int long nint nuint object sbyte short string uint ulong \
            ushort var void",
        macros: "",
        modules: "System",
    };

    pub(super) const GO: Self = Self {
        names: "\
            any append bool byte cap clear close comparable complex complex128 complex64 copy delete error false \
            float32 float64 imag int int16 int32 int64 int8 iota len make max min new nil panic print println \
            real recover rune string true uint uint16 uint32 uint64 uint8 uintptr",
        macros: "",
        modules: "",
    };
}
