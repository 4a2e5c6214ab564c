//! Random bytes of the system.

use std::io;

/// Returns random bytes of the system.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    // The system returns up to 256 bytes at once.
    const { assert!(N <= 256) };
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Returns a token that cannot be guessed: 64 hexadecimal digits.
pub fn random_token() -> io::Result<String> {
    let bytes = random_bytes::<32>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
