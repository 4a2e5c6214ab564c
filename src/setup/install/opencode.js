// Written by `codescout install`; `codescout uninstall` removes it.
import { spawn } from "node:child_process"

const note = (event) =>
  new Promise((resolve) => {
    const hook = spawn(PROGRAM, ["hooks", "agent", "opencode"], { stdio: ["pipe", "pipe", "ignore"], timeout: 2000 })
    let text = ""
    hook.stdout.on("data", (part) => (text += part))
    hook.on("error", () => resolve(""))
    hook.on("close", () => resolve(text))
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(event))
  })

export const Codescout = async ({ directory }) => ({
  "tool.execute.after": async (input, output) => {
    if (input.tool !== "bash" && input.tool !== "grep") return
    const text = await note({ hook_event_name: "PreToolUse", cwd: directory, tool_input: input.args })
    if (text && typeof output.output === "string") output.output += "\n\n" + text
  },
})
