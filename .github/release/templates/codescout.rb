class Codescout < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@BLOCKS@

  def install
    bin.install "codescout"
    bash_completion.install "completions/codescout.bash" => "codescout"
    zsh_completion.install "completions/codescout.zsh" => "_codescout"
    fish_completion.install "completions/codescout.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/codescout --version")
  end
end
