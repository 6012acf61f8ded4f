import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Two starts on the same folder would replace each other's key and server.toml. Answers the process that has it, or takes it. */
export function takeFolder(dataFolder: string): { readonly takenBy?: number; release(): void } {
  mkdirSync(dataFolder, { recursive: true });
  const file = join(dataFolder, 'running.pid');
  const other = processIn(file);
  if (other !== undefined) return { takenBy: other, release: () => undefined };
  writeFileSync(file, String(process.pid));
  return { release: () => rmSync(file, { force: true }) };
}

/** The process a file names, when it is alive. One that was killed leaves the file behind, and the next start takes it over. */
function processIn(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return undefined;
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? Number(readFileSync(file, 'utf8')) : undefined;
  }
}
