import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NewProjectOptions } from './new-project.ts';
import { TARBALL } from './project-files.ts';
import { ProjectRefused } from './project-refused.ts';

/** The name of the package in its repository. On the npm registry it belongs to another project, so it is never installed from there. */
const UNPUBLISHED = 'kit';

/** This very toolkit, as a project depends on it. */
export function toolkitOf(packageRoot: string): NewProjectOptions['toolkit'] {
  const { name, version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { name: string; version: string };
  if (name !== UNPUBLISHED) return { name, source: () => ({ spec: `^${version}` }) };
  // The package has sources too, but no tests.
  const tarball = existsSync(join(packageRoot, 'test')) ? tarballOfClone : packInstalled;
  return { name, source: (scratch) => ({ spec: `file:${TARBALL}`, tarball: tarball(packageRoot, scratch) }) };
}

function tarballOfClone(packageRoot: string): string {
  const tarball = join(packageRoot, '../../dist/kit.tgz');
  if (existsSync(tarball)) return tarball;
  throw new ProjectRefused('The package is not built yet. Run `npm run pack` in the clone, then this command again.');
}

function packInstalled(packageRoot: string, scratch: string): string {
  const packed = spawnSync('npm', ['pack', packageRoot, '--silent', '--ignore-scripts', '--pack-destination', scratch], {
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (packed.status !== 0) throw new ProjectRefused(`npm could not pack ${packageRoot}: ${(packed.stderr || String(packed.error)).trim()}`);
  return join(scratch, packed.stdout.trim());
}
