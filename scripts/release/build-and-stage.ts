import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { PublicNames } from './public-names.ts';
import { stagePackages, type StagedPackage } from './stage.ts';

const root = join(import.meta.dirname, '../..');

export interface PackedPackage extends StagedPackage {
  readonly tarball: string;
}

/** Builds the packages and stages them below `target`. */
export function buildAndStage(names: PublicNames, target: string): StagedPackage[] {
  if (spawnSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' }).status !== 0) process.exit(1);
  return stagePackages(names, target);
}

/** Packs a staged package into `target`. The name of the file has no version, so that a command in a guide stays true. */
export function packStaged(staged: StagedPackage, target: string): PackedPackage {
  mkdirSync(target, { recursive: true });
  const packed = spawnSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', target], {
    cwd: staged.folder,
    encoding: 'utf8',
  });
  if (packed.status !== 0) throw new Error(`npm pack failed for ${staged.name}: ${packed.stderr}`);
  const tarball = join(target, `${staged.name.replace('@', '').replace('/', '-')}.tgz`);
  renameSync(join(target, packed.stdout.trim()), tarball);
  return { ...staged, tarball };
}
