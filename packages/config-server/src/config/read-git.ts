import { existsSync, statSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import type { Environment } from '../document/environment.ts';
import { GitRepository } from '../git/git-repository.ts';
import { isObjectId, refName } from '../git/ref.ts';
import type { TableReader } from './table-reader.ts';

/** Where relative paths of sections are looked up: a folder of the repository. */
export interface GitFolder {
  readonly repository: GitRepository;
  readonly path: string;
}

/** The `[git]` table; undefined without one. What must exist and does not is added to `missing`. */
export function readGit(
  root: TableReader,
  folder: string,
  environment: Environment,
  missing: string[],
): GitFolder | 'unusable' | undefined {
  const reader = root.table('git');
  if (reader === undefined) return root.has('git') ? 'unusable' : undefined;
  const repository = reader.requiredString('repository');
  const gitDirectory = repository === undefined ? undefined : findGitDirectory(reader, resolve(folder, repository), missing);
  const ref = readRef(reader);
  const pin = readPin(reader);
  if (!reader.has('branch') && !reader.has('pin')) reader.problem('branch', 'is missing; set the branch to read, or pin a commit');
  const path = readPath(reader);
  const allowedSigners = readExisting(reader, 'allowed_signers', folder, 'file', missing);
  const gnupgHome = readExisting(reader, 'gnupg_home', folder, 'folder', missing);
  reader.finish();
  if (repository === undefined || gitDirectory === undefined || path === undefined || (ref ?? pin) === undefined) return 'unusable';
  const { PATH, TMPDIR } = environment;
  const variables = { ...(PATH === undefined ? {} : { PATH }), ...(TMPDIR === undefined ? {} : { TMPDIR }) };
  return { repository: new GitRepository({ repository, gitDirectory, ref, pin, allowedSigners, gnupgHome, variables }), path };
}

/** Never reads the repository's configuration: what is needed to find objects and refs follows from the folders. */
function findGitDirectory(reader: TableReader, repository: string, missing: string[]): string | undefined {
  const nested = join(repository, '.git');
  if (existsSync(nested) && !isFolder(nested)) {
    reader.problem(
      'repository',
      `${repository} is a linked worktree, a submodule or a clone with a separate Git directory; set the folder that git rev-parse --git-common-dir prints`,
    );
    return undefined;
  }
  const directory = isFolder(nested) ? nested : repository;
  if (!isFolder(join(directory, 'objects')) || !existsSync(join(directory, 'HEAD'))) {
    for (const candidate of [nested, repository]) missing.push(join(candidate, 'objects'), join(candidate, 'HEAD'));
    reader.problem('repository', `${repository} is not a Git repository; clone one there, or correct the path`);
    return undefined;
  }
  if (existsSync(join(directory, 'reftable'))) {
    reader.problem(
      'repository',
      `${repository} stores its refs as a reftable, which is not supported; run: git refs migrate --ref-format=files`,
    );
    return undefined;
  }
  return directory;
}

function readRef(reader: TableReader): string | undefined {
  const branch = reader.string('branch');
  const ref = branch === undefined ? undefined : refName(branch);
  if (branch !== undefined && ref === undefined) reader.problem('branch', 'is not a branch name; use main, or refs/remotes/origin/main');
  return ref;
}

function readPin(reader: TableReader): string | undefined {
  const pin = reader.string('pin');
  if (pin === undefined || isObjectId(pin)) return pin;
  reader.problem('pin', 'must be a whole commit id, 40 or 64 lowercase hex digits; print it with: git rev-parse');
  return undefined;
}

function readPath(reader: TableReader): string | undefined {
  const path = insideRepository('.', reader.string('path') ?? '.');
  if (path === undefined) reader.problem('path', 'must be a folder inside the repository');
  return path;
}

function readExisting(reader: TableReader, key: string, folder: string, kind: 'file' | 'folder', missing: string[]): string | undefined {
  const listed = reader.string(key);
  if (listed === undefined) return undefined;
  const path = resolve(folder, listed);
  if (existsSync(path) && isFolder(path) === (kind === 'folder')) return path;
  missing.push(path);
  reader.problem(key, `${path} is not a ${kind}`);
  return undefined;
}

/** A path relative to a folder of a repository, without dot segments; undefined when it leads out of the repository. */
export function insideRepository(folder: string, path: string): string | undefined {
  const joined = posix.normalize(posix.join(folder, path));
  return posix.isAbsolute(path) || joined === '..' || joined.startsWith('../') || joined.includes('\0')
    ? undefined
    : joined.replace(/\/$/, '');
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
