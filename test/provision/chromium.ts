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

/** npm carries a Chromium for x86-64 Linux only; elsewhere a Debian root run installs the distribution's. */
function installFromDebian(): string | undefined {
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return undefined;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' });
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'chromium'], { env, stdio: 'ignore' });
  return onPath('chromium');
}

/** Starts a real headless Chromium: CHROMIUM_PATH, else npm's (x86-64 Linux), else one found on PATH. */
export async function launchChromium(): Promise<Browser> {
  const given = process.env['CHROMIUM_PATH'];
  if (given === undefined && process.platform === 'linux' && process.arch === 'x64') {
    const { default: packed } = await import('@sparticuz/chromium');
    // Its own arguments switch web security off, which would blind tests of CSP and CSRF.
    const args = packed.args.filter((arg) => arg !== '--disable-web-security' && arg !== '--allow-running-insecure-content');
    return driver.launch({ executablePath: await packed.executablePath(), args: [...args, ...QUIET], headless: true });
  }
  const found = given ?? onPath('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable') ?? installFromDebian();
  if (found === undefined) {
    throw new Error(`No Chromium for ${process.platform}-${process.arch}: install one and put it on PATH, or set CHROMIUM_PATH.`);
  }
  return driver.launch({ executablePath: found, args: ['--no-sandbox', ...QUIET], headless: true });
}
