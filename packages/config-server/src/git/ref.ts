import { join } from 'node:path';
import { asynchronousFiles } from '../file-access.ts';
import { gitFailure } from './git-failure.ts';
import { treeName } from './tree.ts';

const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export function isObjectId(text: string): boolean {
  return OBJECT_ID.test(text);
}

/** `main` is `refs/heads/main`; a name that begins with `refs/` is taken as it is. Undefined when Git would not accept the name. */
export function refName(branch: string): string | undefined {
  const name = branch.startsWith('refs/') ? branch : `refs/heads/${branch}`;
  const isForbidden = /[\0-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\/$|\.$/.test(name);
  const parts = name.split('/');
  return isForbidden || parts.some((part) => part === '' || part.startsWith('.') || part.endsWith('.lock')) ? undefined : name;
}

/** The files that change when a ref moves. */
export function refFiles(gitDirectory: string, ref: string): string[] {
  return [join(gitDirectory, ref), join(gitDirectory, 'packed-refs')];
}

/**
 * The commit a ref points to, read as Git reads it: its own file first, then packed-refs. Git writes packed-refs before it removes the
 * ref's own file, so a ref that is in neither is looked for once more.
 */
export async function resolveRef(gitDirectory: string, ref: string, repository: string): Promise<string> {
  // Names are bytes, as in a tree.
  const name = treeName(ref);
  const [loose, packed] = refFiles(gitDirectory, ref) as [string, string];
  for (let attempt = 1; attempt <= 2; attempt++) {
    const own = (await textOf(loose, repository))?.trim();
    // An empty file is what a crash left of an update. The packed value is older, so it is not used.
    if (own?.startsWith('ref:')) throw gitFailure(repository, `${ref} is a symbolic ref; set git.branch to the branch that it points to`);
    if (own !== undefined && isObjectId(own)) return own;
    if (own !== undefined) throw gitFailure(repository, `${ref} does not contain a commit id`);
    const line = (await textOf(packed, repository))?.split('\n').find((entry) => entry.endsWith(` ${name}`));
    const id = line?.slice(0, line.indexOf(' '));
    if (id !== undefined && isObjectId(id)) return id;
  }
  throw gitFailure(repository, `${ref} does not exist; fetch it, or correct git.branch`);
}

async function textOf(path: string, repository: string): Promise<string | undefined> {
  try {
    await asynchronousFiles.stat(path);
    return (await asynchronousFiles.read(path)).toString('latin1');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    // A folder in its place belongs to branches with longer names.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return undefined;
    throw gitFailure(repository, `a ref file cannot be read (${code})`);
  }
}
