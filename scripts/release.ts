// Builds, stages and packs the packages under their public name, and publishes them: npm run release -- --name <name> [--dry-run]
// docs/guide/publishing.md explains it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAndStage, packStaged, type PackedPackage } from './release/build-and-stage.ts';
import { publicNames, type PublicNames } from './release/public-names.ts';

const root = join(import.meta.dirname, '..');
const target = join(root, 'dist/release');
const USAGE = 'Usage: npm run release -- --name <name> [--dry-run] [--tag <tag>] [--registry <url>] [--allow-uncommitted]';

interface ReleaseOptions {
  readonly names: PublicNames;
  readonly dryRun: boolean;
  /** For a trial with a registry of your own. */
  readonly allowsUncommitted: boolean;
  /** Passed to `npm publish`. */
  readonly publishArgs: readonly string[];
}

function readArguments(): ReleaseOptions {
  const { values } = parseArgs({
    options: {
      name: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      tag: { type: 'string', default: 'latest' },
      registry: { type: 'string' },
      'allow-uncommitted': { type: 'boolean', default: false },
    },
  });
  if (values.name === undefined) throw new Error('--name is missing: the packages have no public name yet.');
  const registry = values.registry === undefined ? [] : ['--registry', values.registry];
  return {
    names: publicNames(values.name),
    dryRun: values['dry-run'],
    allowsUncommitted: values['allow-uncommitted'],
    publishArgs: ['--access', 'public', '--tag', values.tag, ...registry],
  };
}

/** A release is a commit: a working tree that differs from it cannot be built again. */
function refuseUncommitted(): void {
  const status = spawnSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' });
  if (status.status !== 0 || status.stdout !== '')
    throw new Error('The working tree has changes that are not committed. Commit them, or use --dry-run.');
}

function publish({ name, version, tarball }: PackedPackage, args: readonly string[]): void {
  const npm = spawnSync('npm', ['publish', tarball, ...args], { stdio: 'inherit' });
  if (npm.status !== 0) throw new Error(`npm publish failed for ${name} ${version}. Packages that are listed above it are published.`);
}

function main(): void {
  const { names, dryRun, allowsUncommitted, publishArgs } = readArguments();
  if (!dryRun && !allowsUncommitted) refuseUncommitted();
  const packed = buildAndStage(names, target).map((staged) => packStaged(staged, target));
  for (const each of packed) {
    if (!dryRun) publish(each, publishArgs);
    console.log(`${dryRun ? 'would publish' : 'published'} ${each.name} ${each.version}  ${each.tarball}`);
  }
  console.log(`The pages with the public names are in ${join(target, 'pages')}.`);
  if (dryRun) console.log('Nothing was published.');
}

try {
  main();
} catch (error) {
  console.error(`error: ${(error as Error).message}\n${USAGE}`);
  process.exitCode = 1;
}
