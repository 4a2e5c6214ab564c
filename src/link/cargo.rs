//! Reads `Cargo.toml`.

use super::environment::Package;

/// Reads the name and the root files of a `Cargo.toml`. Returns `None` if it has no package.
pub(super) fn cargo_package(folder: String, manifest: &toml::Table) -> Option<Package> {
    let text = |table: Option<&toml::Value>, key: &str| Some(table?.get(key)?.as_str()?.to_owned());
    let (package, lib) = (manifest.get("package"), manifest.get("lib"));
    let mut roots: Vec<String> = text(lib, "path").into_iter().collect();
    for (kind, automatic, folder) in [
        ("bin", "autobins", "src/bin/"),
        ("test", "autotests", "tests/"),
        ("bench", "autobenches", "benches/"),
        ("example", "autoexamples", "examples/"),
    ] {
        let is_automatic = package.and_then(|package| package.get(automatic)?.as_bool());
        roots.extend(is_automatic.unwrap_or(true).then(|| folder.to_owned()));
        let targets = manifest.get(kind).and_then(toml::Value::as_array);
        roots.extend(
            targets
                .into_iter()
                .flatten()
                .filter_map(|target| text(Some(target), "path")),
        );
    }
    roots.extend(text(package, "build"));
    Some(Package {
        name: text(lib, "name").or_else(|| text(package, "name"))?,
        folder,
        roots,
    })
}

/// Adds the names of the dependencies of a `Cargo.toml`, and the packages that they mean.
pub(super) fn add_crate_aliases(manifest: &toml::Table, found: &mut Vec<(String, String)>) {
    for (key, value) in manifest {
        let Some(table) = value.as_table() else { continue };
        if !key.ends_with("dependencies") {
            add_crate_aliases(table, found);
            continue;
        }
        for (alias, dependency) in table {
            let package = dependency.get("package").and_then(toml::Value::as_str).unwrap_or(alias);
            found.push((alias.replace('-', "_"), package.replace('-', "_")));
        }
    }
}
