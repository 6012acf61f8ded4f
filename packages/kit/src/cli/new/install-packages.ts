import { spawn } from 'node:child_process';
import { ProjectRefused } from './project-refused.ts';

/** npm repeats a failed download after 10 s and after a minute; without a network that only delays the message. */
const FEWER_RETRIES = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=2000'];

/** Lines of npm's report that are shown. */
const REPORT_LINES_MAX = 8;

/** Runs `npm install` in the project. Rejects with npm's own words. */
export async function installPackages(folder: string, signal: AbortSignal): Promise<void> {
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error', ...FEWER_RETRIES];
  const npm = spawn('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], shell: process.platform === 'win32', signal });
  let report = '';
  npm.stderr.on('data', (chunk: Buffer) => (report += chunk.toString()));
  const code = await new Promise<number | null>((ended, failed) => {
    npm.once('error', failed).once('close', ended);
  }).catch((error: NodeJS.ErrnoException) => {
    if (signal.aborted) throw new ProjectRefused('Interrupted. Nothing was created.');
    throw new ProjectRefused(`npm cannot be run (${error.code ?? error.message}). Install it, or use --no-install. Nothing was created.`, {
      cause: error,
    });
  });
  if (code !== 0)
    throw new ProjectRefused(`The packages could not be installed, so nothing was created. npm reports:\n${shortened(report)}`);
}

function shortened(report: string): string {
  const lines = report
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!) ?/, '').trimEnd())
    .filter((line) => line !== '' && !/complete log of this run/i.test(line) && !/_logs/.test(line));
  return lines
    .slice(0, REPORT_LINES_MAX)
    .map((line) => `  ${line}`)
    .join('\n');
}
