//! Finds the packages of a repository by their manifests, and which of them depend on which.
//!
//! If a manifest above a package declares a workspace, the package must be a member of it. So manifests of test data
//! are not packages.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

use super::source::{Source, SourceError, Sources};
use crate::model::with_placeholders;

/// Limit on the size of a manifest.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// A package of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name in the manifest; for Gradle, the path of the project.
    pub name: String,
    /// The package manager.
    pub manager: &'static str,
    /// The folder, without a slash at the end; empty for the root.
    pub folder: String,
    /// The packages that it needs, as positions in the list of packages.
    pub needs: Vec<usize>,
}

/// What a manifest says.
#[derive(Debug, Default)]
struct Manifest {
    manager: &'static str,
    folder: String,
    /// `None` for a manifest that only declares a workspace.
    name: Option<String>,
    needs: BTreeSet<Need>,
    /// The members of the workspace that it declares, by folder. `None` if it declares none.
    members: Option<Members>,
    /// The path, if the file cannot be parsed.
    broken: Option<String>,
}

/// Something that a package needs: a name, or a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Name(String),
    Folder(String),
}

/// The members of a workspace: folders that match `include` and not `exclude`.
#[derive(Debug, Default)]
struct Members {
    include: Vec<String>,
    exclude: Vec<String>,
}

/// Returns the packages of a view by folder, and the manifests that cannot be parsed.
pub fn packages(sources: &Sources<'_>) -> Result<(Vec<Package>, Vec<String>), SourceError> {
    let mut manifests = Vec::new();
    let view = sources.view();
    let mut reader = sources.reader();
    for (file, found) in view.files() {
        let path = with_placeholders(found.path);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let Some((manager, parse)) = format_of(name) else {
            continue;
        };
        sources.go_on()?;
        let text = match reader.read_up_to(file, MAX_MANIFEST_BYTES)? {
            Source::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        };
        let text = text.as_deref().map(|text| text.trim_start_matches('\u{feff}'));
        let broken = || Manifest {
            broken: Some(path.to_string()),
            ..Manifest::default()
        };
        manifests.push(Manifest {
            manager,
            folder: folder.to_owned(),
            ..text.and_then(|text| parse(text, folder, name)).unwrap_or_else(broken)
        });
    }
    members_of(&merged(manifests), || sources.go_on())
}

/// Reads a manifest from its text, folder and file name. Returns `None` if it cannot be parsed.
type Parse = fn(&str, &str, &str) -> Option<Manifest>;

fn format_of(name: &str) -> Option<(&'static str, Parse)> {
    Some(match name {
        "Cargo.toml" => ("cargo", cargo),
        "package.json" => ("npm", npm),
        "pnpm-workspace.yaml" => ("npm", pnpm),
        "go.mod" | "go.work" => ("go", go),
        "pyproject.toml" => ("python", python),
        "pom.xml" => ("maven", maven),
        "settings.gradle" | "settings.gradle.kts" | "build.gradle" | "build.gradle.kts" => ("gradle", gradle),
        "composer.json" => ("composer", composer),
        name if name.ends_with(".csproj") || name.ends_with(".fsproj") => ("dotnet", dotnet),
        _ => return None,
    })
}

/// Joins the manifests of one package manager in one folder. Projects of .NET can share a folder.
fn merged(manifests: Vec<Manifest>) -> Vec<Manifest> {
    let (mut merged, mut known) = (Vec::<Manifest>::new(), HashMap::new());
    for manifest in manifests {
        let key = (manifest.manager, manifest.folder.clone());
        match known.get(&key).map(|number: &usize| &mut merged[*number]) {
            Some(other) if manifest.manager != "dotnet" => {
                other.name = other.name.take().or(manifest.name);
                other.members = other.members.take().or(manifest.members);
                other.broken = other.broken.take().or(manifest.broken);
                other.needs.extend(manifest.needs);
            }
            _ => {
                known.insert(key, merged.len());
                merged.push(manifest);
            }
        }
    }
    name_projects(&mut merged);
    merged
}

/// Names the projects of Gradle by their paths in the build, and the projects that they need by folder.
fn name_projects(manifests: &mut [Manifest]) {
    let is_build = |one: &&Manifest| one.manager == "gradle" && one.members.is_some();
    let builds: BTreeSet<String> = manifests
        .iter()
        .filter(is_build)
        .map(|one| one.folder.clone())
        .collect();
    for project in manifests
        .iter_mut()
        .filter(|one| one.manager == "gradle" && one.name.is_some())
    {
        let build = ancestors(&project.folder)
            .find(|folder| builds.contains(*folder))
            .unwrap_or_default();
        let path = project.folder[build.len()..].trim_start_matches('/').replace('/', ":");
        let needs = std::mem::take(&mut project.needs).into_iter().map(|need| match need {
            Need::Name(path) => Need::Folder(join(build, &path.replace(':', "/"))),
            folder => folder,
        });
        project.needs = needs.collect();
        project.name = Some(format!(":{path}"));
    }
}

/// Returns the packages among the manifests, with what they need, and the manifests of packages that cannot be parsed.
fn members_of(
    manifests: &[Manifest],
    go_on: impl Fn() -> Result<(), SourceError>,
) -> Result<(Vec<Package>, Vec<String>), SourceError> {
    let mut by_folder: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (number, manifest) in manifests.iter().enumerate() {
        by_folder.entry((manifest.manager, &manifest.folder)).or_insert(number);
    }
    let mut broken = Vec::new();
    let workspaces = workspaces(manifests, &by_folder, &mut broken, go_on)?;
    // `None` if no workspace is declared above.
    let is_listed = |manifest: &Manifest| {
        let above = ancestors(&manifest.folder).skip(1);
        let mut above = above.filter_map(|folder| by_folder.get(&(manifest.manager, folder)));
        let workspace = &workspaces[above.find(|number| workspaces.contains_key(*number))?];
        let is_own = manifest.members.is_some() && manifest.manager != "maven";
        Some(is_own || workspace.contains(manifest.folder.as_str()))
    };
    let mut members = Vec::new();
    for manifest in manifests {
        let is_listed = is_listed(manifest);
        // Packages of npm need no name to be in a workspace.
        let has_name = manifest.name.is_some() || manifest.manager == "npm" && is_listed == Some(true);
        match &manifest.broken {
            _ if is_listed == Some(false) => {}
            Some(path) => broken.push(path.clone()),
            None if has_name => members.push(manifest),
            None => {}
        }
    }
    members.sort_by(|a, b| (&a.folder, a.manager, &a.name).cmp(&(&b.folder, b.manager, &b.name)));
    let (mut names, mut of_any, mut folders) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (number, member) in members.iter().enumerate() {
        let (manager, name) = (member.manager, member.shown_name());
        names.entry((manager, member.repository(), name)).or_insert(number);
        of_any.entry((manager, name)).or_insert(number);
        folders.entry((manager, member.folder.as_str())).or_insert(number);
    }
    let package = |(number, member): (usize, &&Manifest)| {
        let manager = member.manager;
        // A package of the same repository is meant before one of another.
        let found = member.needs.iter().filter_map(|need| match need {
            Need::Name(name) => names
                .get(&(manager, member.repository(), name.as_str()))
                .or_else(|| of_any.get(&(manager, name.as_str()))),
            Need::Folder(folder) => folders.get(&(manager, folder.as_str())),
        });
        let needs: BTreeSet<usize> = found.copied().filter(|other| *other != number).collect();
        Package {
            name: member.shown_name().to_owned(),
            manager: member.manager,
            folder: member.folder.clone(),
            needs: needs.into_iter().collect(),
        }
    };
    Ok((members.iter().enumerate().map(package).collect(), broken))
}

impl Manifest {
    fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.folder)
    }

    /// Returns the root folder of the repository.
    fn repository(&self) -> &str {
        ancestors(&self.folder).last().unwrap_or_default()
    }
}

/// Number of workspaces around a workspace that is read. More are the work of an attacker.
const MAX_NESTED: usize = 8;

/// Returns the folders of the members of each workspace, by the number of its manifest. Adds those whose patterns cannot
/// be used to `broken`.
fn workspaces<'m>(
    manifests: &'m [Manifest],
    by_folder: &BTreeMap<(&str, &'m str), usize>,
    broken: &mut Vec<String>,
    go_on: impl Fn() -> Result<(), SourceError>,
) -> Result<HashMap<usize, BTreeSet<&'m str>>, SourceError> {
    let mut found = HashMap::new();
    for (number, root) in manifests.iter().enumerate() {
        let Some(members) = &root.members else { continue };
        go_on()?;
        let around = ancestors(&root.folder).skip(1);
        let around = around.filter_map(|folder| by_folder.get(&(root.manager, folder)));
        if around.filter(|number| manifests[**number].members.is_some()).count() > MAX_NESTED {
            continue;
        }
        let patterns = |list: &[String]| Patterns::new(&root.folder, list);
        let (Some(include), Some(exclude)) = (patterns(&members.include), patterns(&members.exclude)) else {
            broken.push(format!("the members of {}", root.shown_name()));
            continue;
        };
        let is_below = |folder: &str| is_in(folder, &root.folder);
        let below = by_folder.range((root.manager, root.folder.as_str())..);
        let below = below.map(|((manager, folder), _)| (*manager, *folder));
        let below = below.take_while(|(manager, folder)| *manager == root.manager && folder.starts_with(&root.folder));
        let folders = below.map(|(_, folder)| folder).filter(|folder| is_below(folder));
        let matching = folders.filter(|folder| include.match_folder(folder) && !exclude.match_folder(folder));
        let mut folders: BTreeSet<&str> = matching.collect();
        folders.insert(&root.folder);
        // Cargo adds the packages that members need by path, Maven the modules of modules.
        let mut waiting: Vec<&str> = folders.iter().copied().collect();
        while let Some(folder) = waiting.pop().filter(|_| matches!(root.manager, "cargo" | "maven")) {
            let Some(member) = by_folder.get(&(root.manager, folder)).map(|number| &manifests[*number]) else {
                continue;
            };
            let modules = member.members.iter().filter(|_| root.manager == "maven");
            let modules = modules
                .flat_map(|members| &members.include)
                .map(|module| join(folder, module));
            let needed = member.needs.iter().filter_map(|need| match need {
                Need::Folder(folder) => Some(folder.clone()),
                Need::Name(_) => None,
            });
            for needed in needed.chain(modules) {
                let known = by_folder
                    .get(&(root.manager, needed.as_str()))
                    .map(|number| &manifests[*number]);
                let known = known.filter(|one| is_below(&one.folder) && !exclude.match_folder(&one.folder));
                waiting.extend(
                    known
                        .map(|one| one.folder.as_str())
                        .filter(|folder| folders.insert(folder)),
                );
            }
        }
        found.insert(number, folders);
    }
    Ok(found)
}

/// Returns a folder and the folders above it, up to the root of its repository.
pub fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| {
        let is_root = folder.is_empty() || folder.ends_with(':');
        (!is_root).then(|| folder.rsplit_once('/').map_or("", |(above, _)| above))
    })
}

/// Returns true for a folder and what is below it.
fn is_in(folder: &str, root: &str) -> bool {
    let below = folder.strip_prefix(root);
    below.is_some_and(|below| root.is_empty() || below.is_empty() || below.starts_with('/'))
}

/// Patterns of folders. Most are plain paths.
struct Patterns {
    plain: BTreeSet<String>,
    globs: GlobSet,
}

impl Patterns {
    /// Reads patterns relative to a folder. Returns `None` if one is not valid, or if they are too many.
    fn new(folder: &str, patterns: &[String]) -> Option<Self> {
        let whole = patterns.iter().map(|pattern| join(folder, pattern));
        let (globs, plain): (Vec<String>, Vec<String>) =
            whole.partition(|pattern| pattern.contains(['*', '?', '[', '{']));
        let mut set = GlobSetBuilder::new();
        for pattern in globs {
            set.add(GlobBuilder::new(&pattern).literal_separator(true).build().ok()?);
        }
        let globs = set.build().ok()?;
        let plain = plain.into_iter().collect();
        Some(Self { plain, globs })
    }

    fn match_folder(&self, folder: &str) -> bool {
        self.plain.contains(folder) || self.globs.is_match(folder)
    }
}

/// Returns a path relative to a folder as one from the root. `..` does not leave the root.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if !parts.last().is_some_and(|part| part.ends_with(':')) => {
                parts.pop();
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn cargo(text: &str, folder: &str, _: &str) -> Option<Manifest> {
    let table: toml::Table = text.parse().ok()?;
    let mut manifest = Manifest {
        name: toml_text(&table, &["package", "name"]),
        ..Manifest::default()
    };
    let mut waiting = vec![&table];
    while let Some(table) = waiting.pop() {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            if !key.ends_with("dependencies") {
                // What a workspace declares, its members inherit by name.
                waiting.extend((key != "workspace").then_some(inner));
                continue;
            }
            for (alias, dependency) in inner {
                let text = |key: &str| dependency.get(key).and_then(toml::Value::as_str);
                manifest.needs.insert(match text("path") {
                    Some(path) => Need::Folder(join(folder, path)),
                    None => Need::Name(text("package").unwrap_or(alias).to_owned()),
                });
            }
        }
    }
    if let Some(workspace) = table.get("workspace").and_then(toml::Value::as_table) {
        manifest.members = Some(Members {
            include: toml_list(workspace.get("members")),
            exclude: toml_list(workspace.get("exclude")),
        });
    }
    Some(manifest)
}

fn npm(text: &str, folder: &str, _: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    let mut manifest = Manifest {
        name: value["name"].as_str().map(str::to_owned),
        ..Manifest::default()
    };
    for section in [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ] {
        for (name, version) in value[section].as_object().into_iter().flatten() {
            let local = version.as_str().and_then(|version| {
                let place = version
                    .strip_prefix("file:")
                    .or_else(|| version.strip_prefix("link:"))?;
                Some(Need::Folder(join(folder, place)))
            });
            manifest.needs.insert(Need::Name(name.clone()));
            manifest.needs.extend(local);
        }
    }
    let workspaces = &value["workspaces"];
    let list = workspaces.as_array().or_else(|| workspaces["packages"].as_array());
    manifest.members = list.map(|list| signed(list.iter().filter_map(Value::as_str)));
    Some(manifest)
}

/// Divides patterns into those that include and those that exclude, `!packages/old`.
fn signed<'p>(patterns: impl Iterator<Item = &'p str>) -> Members {
    let (exclude, include): (Vec<&str>, Vec<&str>) = patterns.partition(|pattern| pattern.starts_with('!'));
    Members {
        include: include.into_iter().map(str::to_owned).collect(),
        exclude: exclude.into_iter().map(|pattern| pattern[1..].to_owned()).collect(),
    }
}

fn pnpm(text: &str, _: &str, _: &str) -> Option<Manifest> {
    let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default());
    let list = lines.skip_while(|line| line.trim_end() != "packages:").skip(1);
    let items = list.take_while(|line| line.trim().is_empty() || line.starts_with([' ', '-', '#', '\t']));
    let items = items.filter_map(|line| line.trim().strip_prefix('-'));
    Some(Manifest {
        members: Some(signed(items.map(|item| item.trim().trim_matches(['\'', '"'])))),
        ..Manifest::default()
    })
}

/// Returns the directives of a `go.mod` or `go.work` with their words; those of a block one by one.
pub fn go_directives(text: &str) -> Vec<(&str, Vec<&str>)> {
    let (mut block, mut found) = (None, Vec::new());
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('"')).collect();
        match (block, words.as_slice()) {
            (_, []) => {}
            (_, [")"]) => block = None,
            (None, [directive, "("]) => block = Some(*directive),
            (None, [directive, words @ ..]) => found.push((*directive, words.to_vec())),
            (Some(directive), words) => found.push((directive, words.to_vec())),
        }
    }
    found
}

fn go(text: &str, folder: &str, name: &str) -> Option<Manifest> {
    let (mut manifest, mut uses) = (Manifest::default(), Vec::new());
    for (directive, words) in go_directives(text) {
        match (directive, words.as_slice()) {
            ("module", [module]) => manifest.name = Some((*module).to_owned()),
            ("use", [path]) => uses.push((*path).to_owned()),
            ("require", [module, _]) => {
                manifest.needs.insert(Need::Name((*module).to_owned()));
            }
            ("replace", [_, "=>", path] | [_, _, "=>", path]) => {
                manifest.needs.insert(Need::Folder(join(folder, path)));
            }
            _ => {}
        }
    }
    manifest.members = (name == "go.work").then(|| Members {
        include: uses,
        exclude: Vec::new(),
    });
    Some(manifest)
}

fn python(text: &str, folder: &str, _: &str) -> Option<Manifest> {
    let table: toml::Table = text.parse().ok()?;
    let poetry = toml_text(&table, &["tool", "poetry", "name"]);
    let mut manifest = Manifest {
        name: toml_text(&table, &["project", "name"])
            .or(poetry)
            .map(|name| python_name(&name)),
        ..Manifest::default()
    };
    let mut requirements = toml_list(toml_at(&table, &["project", "dependencies"]));
    for section in [["project", "optional-dependencies"].as_slice(), &["dependency-groups"]] {
        let groups = toml_at(&table, section).and_then(toml::Value::as_table);
        requirements.extend(
            groups
                .into_iter()
                .flat_map(|groups| groups.values())
                .flat_map(|list| toml_list(Some(list))),
        );
    }
    let of_poetry = toml_at(&table, &["tool", "poetry", "dependencies"]).and_then(toml::Value::as_table);
    for (name, value) in of_poetry.into_iter().flatten() {
        requirements.push(name.clone());
        let path = value.get("path").and_then(toml::Value::as_str);
        manifest.needs.extend(path.map(|path| Need::Folder(join(folder, path))));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let names = requirements
        .iter()
        .map(|text| text.split(|c| !is_name(c)).next().unwrap_or_default());
    manifest.needs.extend(names.map(|name| Need::Name(python_name(name))));
    let workspace = toml_at(&table, &["tool", "uv", "workspace"]);
    manifest.members = workspace.map(|workspace| Members {
        include: toml_list(workspace.get("members")),
        exclude: toml_list(workspace.get("exclude")),
    });
    Some(manifest)
}

/// Returns the name of a Python package as the index has it.
fn python_name(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

fn maven(text: &str, _: &str, _: &str) -> Option<Manifest> {
    let project = text.contains("<project").then_some(text)?;
    let parent = element(project, "parent");
    // The coordinates of the parent have the same elements as those of the project.
    let own = project.replacen(parent.unwrap_or("\0"), "", 1);
    let dependencies = between(project, "<dependency>", "</dependency>");
    let modules = element(project, "modules").map(|modules| between(modules, "<module>", "</module>"));
    let names = dependencies
        .iter()
        .chain(&parent)
        .filter_map(|one| element(one, "artifactId"));
    Some(Manifest {
        name: element(&own, "artifactId").map(|name| name.trim().to_owned()),
        needs: names.map(|name| Need::Name(name.trim().to_owned())).collect(),
        members: modules.map(|modules| Members {
            include: modules.into_iter().map(|module| module.trim().to_owned()).collect(),
            exclude: Vec::new(),
        }),
        ..Manifest::default()
    })
}

fn dotnet(text: &str, _: &str, name: &str) -> Option<Manifest> {
    let references = between(text, "<ProjectReference", ">");
    let includes = references
        .iter()
        .filter_map(|one| between(one, "Include=\"", "\"").first().copied());
    let names = includes.map(|path| {
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        Need::Name(file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned())
    });
    Some(Manifest {
        name: name.rsplit_once('.').map(|(stem, _)| stem.to_owned()),
        needs: names.collect(),
        ..Manifest::default()
    })
}

fn composer(text: &str, _: &str, _: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    let required = ["require", "require-dev"]
        .into_iter()
        .flat_map(|key| value[key].as_object().into_iter().flatten());
    Some(Manifest {
        name: value["name"].as_str().map(str::to_owned),
        needs: required.map(|(name, _)| Need::Name(name.clone())).collect(),
        ..Manifest::default()
    })
}

/// Reads a settings or build file of Gradle. A project has a path such as `:core:api`, which is its folder by default.
fn gradle(text: &str, folder: &str, name: &str) -> Option<Manifest> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut manifest = Manifest::default();
    if name.starts_with("settings") {
        let mut include = Vec::new();
        for at in code.match_indices("include").map(|(at, word)| at + word.len()) {
            // `include(":a", ":b")` or `include ':a',\n ':b'`. Other builds, `includeBuild`, are not projects.
            let quoted = |c: char| c.is_whitespace() || matches!(c, '(' | ',');
            let mut rest = code[at..].trim_start_matches(quoted);
            if code[at..].starts_with(char::is_alphanumeric) {
                continue;
            }
            while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
                let Some((path, after)) = rest[1..].split_once(quote) else {
                    break;
                };
                include.push(path.trim_start_matches(':').replace(':', "/"));
                rest = after.trim_start().strip_prefix(',').map_or("", str::trim_start);
            }
        }
        manifest.members = Some(Members {
            include,
            exclude: Vec::new(),
        });
        return Some(manifest);
    }
    manifest.name = Some(folder.to_owned());
    for call in between(&code, "project(", ")") {
        let path = call.rsplit('=').next().unwrap_or(call).trim().trim_matches(['"', '\'']);
        manifest
            .needs
            .insert(Need::Name(format!(":{}", path.trim_start_matches(':'))));
    }
    Some(manifest)
}

fn toml_at<'t>(table: &'t toml::Table, path: &[&str]) -> Option<&'t toml::Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

fn toml_text(table: &toml::Table, path: &[&str]) -> Option<String> {
    toml_at(table, path)?.as_str().map(str::to_owned)
}

fn toml_list(value: Option<&toml::Value>) -> Vec<String> {
    let list = value.and_then(toml::Value::as_array).into_iter().flatten();
    list.filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

/// Returns the content of the first element with this name.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    between(text, &format!("<{name}>"), &format!("</{name}>"))
        .first()
        .copied()
}

/// Returns the texts between a start and the next end.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = rest.split_once(start) {
        let Some((inner, after)) = after.split_once(end) else {
            break;
        };
        found.push(inner);
        rest = after;
    }
    found
}
