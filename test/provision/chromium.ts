import { existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { chromium as driver, type Browser } from 'playwright-core';

const QUIET = ['--disable-background-networking', '--disable-component-update', '--no-first-run', '--disable-sync', '--disable-quic'];

function onPath(...names: string[]): string | undefined {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter))
    for (const name of names) if (folder !== '' && existsSync(join(folder, name))) return join(folder, name);
  return undefined;
}

/** A root run on Debian installs the distribution's. */
function installFromDebian(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return undefined;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' });
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { env, stdio: 'ignore' });
  return onPath('chromium');
}

/** Starts a real headless Chromium: CHROMIUM_PATH, else one on PATH, else Debian's (root), else npm's (x86-64 Linux). */
export async function launchChromium(): Promise<Browser> {
  const found =
    process.env['CHROMIUM_PATH'] ?? onPath('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable') ?? installFromDebian();
  if (found !== undefined) return driver.launch({ executablePath: found, args: ['--no-sandbox', ...QUIET], headless: true });
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`No Chromium for ${process.platform}-${process.arch}: install one and put it on PATH, or set CHROMIUM_PATH.`);
  const { default: packed } = await import('@sparticuz/chromium');
  const args = packed.args.filter((arg) => !UNUSABLE.has(arg));
  return driver.launch({ executablePath: await packed.executablePath(), args: [...args, ...QUIET], headless: true });
}

/**
 * Of npm's own arguments two switch web security off, which would blind tests of CSP and CSRF; in one process the browser ends with the
 * first page that crashes, seen on x86-64 with Chromium 153.
 */
const UNUSABLE: ReadonlySet<string> = new Set(['--disable-web-security', '--allow-running-insecure-content', '--single-process']);
