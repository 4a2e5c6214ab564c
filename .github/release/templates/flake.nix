{
  description = "@DESCRIPTION@";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  outputs = { self, nixpkgs }:
    let
      archives = {
@ARCHIVES@
      };
      package = system: archive:
        let pkgs = nixpkgs.legacyPackages.${system};
        in pkgs.stdenvNoCC.mkDerivation {
          pname = "codescout";
          version = "@VERSION@";
          src = pkgs.fetchurl archive;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          dontStrip = true;
          installPhase = ''
            install -Dm755 codescout $out/bin/codescout
            installShellCompletion --cmd codescout \
              --bash completions/codescout.bash --zsh completions/codescout.zsh --fish completions/codescout.fish
          '';
          meta.mainProgram = "codescout";
        };
    in {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
