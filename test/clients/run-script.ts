import { spawn } from 'node:child_process';

export interface ScriptResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end without blocking this process, which may serve its requests. */
export function runScript(
  command: string,
  args: readonly string[],
  cwd: string,
  environment: Record<string, string>,
): Promise<ScriptResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...environment } });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    // Not `exit`: its last output may still be on the way.
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
