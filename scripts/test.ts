// `npm test`: vitest, and with KIT_RERUN_FAILED=1, as .ci/run sets it, the files that failed once more, alone.
//
// A fault fails twice; a wait that was too short for a busy machine does not refuse a submission, and is printed for somebody to mend.
// Whole files, in new processes: a test that is repeated after half of itself finds the rows, logs and browsers that the first attempt left.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import process from 'node:process';

/** More failed files than a busy machine explains. */
const RERUN_MAX = 8;
const root = join(import.meta.dirname, '..');

const folder = mkdtempSync(join(tmpdir(), 'kit-failed-files-'));
const list = join(folder, 'files.txt');

function vitest(options: readonly string[]): Promise<number> {
  const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const child = spawn(process.execPath, [program, 'run', ...options], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, KIT_FAILED_FILES: list },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)));
}

function failedFiles(): string[] {
  try {
    return readFileSync(list, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => relative(root, line));
  } catch {
    return [];
  }
}

let code = await vitest(process.argv.slice(2));
const failed = failedFiles();
if (code !== 0 && process.env['KIT_RERUN_FAILED'] === '1' && failed.length > 0 && failed.length <= RERUN_MAX) {
  console.warn(`\nRun again, alone:\n${failed.map((file) => `  ${file}\n`).join('')}`);
  code = await vitest(['--maxWorkers=1', ...failed]);
  if (code === 0) console.warn(`\nPassed only when run again, mend them:\n${failed.map((file) => `  ${file}\n`).join('')}`);
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = code;
