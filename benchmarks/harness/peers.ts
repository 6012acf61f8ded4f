import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..', '.peers');

/**
 * Installs peers on demand, exact versions, into a folder of their own: what we are measured against never enters
 * the product's lock file. Returns the folder.
 */
export function installPeers(dependencies: Readonly<Record<string, string>>, print: (line: string) => void): string {
  const manifest = JSON.stringify({ name: 'peers', private: true, type: 'module', dependencies }, null, 2);
  const folder = join(root, createHash('sha256').update(manifest).digest('hex').slice(0, 12));
  if (existsSync(join(folder, '.installed'))) return folder;
  print(
    `installing peers: ${Object.entries(dependencies)
      .map(([name, version]) => `${name}@${version}`)
      .join(', ')}`,
  );
  // Beside its place first: two commits that are compared may install the same peers at once.
  mkdirSync(root, { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  const draft = mkdtempSync(`${folder}-`);
  writeFileSync(join(draft, 'package.json'), manifest);
  const install = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-package-lock', '--workspaces=false'], {
    cwd: draft,
    encoding: 'utf8',
  });
  if (install.status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    throw new Error(`peers could not be installed: ${install.stderr.slice(-800)}`);
  }
  writeFileSync(join(draft, '.installed'), '');
  moveInto(draft, folder);
  return folder;
}

/** The first to be complete stays. */
function moveInto(draft: string, folder: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(join(folder, '.installed'))) throw error;
  }
}

/** The URL of a peer's module, to be imported dynamically: `await import(peerUrl(folder, 'bullmq'))`. */
export function peerUrl(folder: string, name: string): string {
  return pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href;
}
