import { LoadFailure } from '../document/load-failure.ts';
import type { Sources } from '../section/read-sources.ts';
import type { FileSource } from '../section/definition.ts';
import type { FileReference } from './open-secrets.ts';
import { isBelow, referencedValue, REFERENCED_BYTES_MAX, resolveBelow } from './reference.ts';
import type { Secrets } from './secrets.ts';

/** The referenced values by path, read together with the files that refer to them. */
export interface ReferencesRead<Read> {
  readonly read: Read;
  readonly values: ReadonlyMap<string, string>;
  /** A failure for a link that led elsewhere before the last byte was read, so that the values may be of two versions of a mount. */
  readonly moved: LoadFailure | undefined;
}

/** Reads the files of a section once more, now with every file they refer to: all of them as one consistent set. */
export async function readReferences<Read extends { readonly sources: Sources }>(
  references: readonly FileReference[],
  secrets: Secrets,
  readWith: (targets: readonly FileSource[]) => Promise<Read>,
): Promise<ReferencesRead<Read>> {
  const targets = new Map<string, FileSource>();
  for (const reference of references) {
    if (!targets.has(reference.path)) targets.set(reference.path, await sourceOf(reference, secrets));
  }
  const read = await readWith([...targets.values()]).catch((error: unknown) => {
    throw asReferenceFailure(error, references, targets);
  });
  const values = new Map<string, string>();
  for (const reference of references) values.set(reference.path, valueOf(reference, read.sources.get(targets.get(reference.path)!)));
  return { read, values, moved: await movedReference(references, targets, secrets) };
}

async function movedReference(
  references: readonly FileReference[],
  targets: ReadonlyMap<string, FileSource>,
  { mounts }: Secrets,
): Promise<LoadFailure | undefined> {
  for (const reference of references) {
    const target = await resolveBelow(reference.path, mounts).catch(() => undefined);
    if (target !== targets.get(reference.path)!.path) return failure(reference, 'keeps changing while it is read');
  }
  return undefined;
}

function failure({ key, origin, path }: FileReference, what: string): LoadFailure {
  return new LoadFailure('reference', origin, `key ${key} refers to ${path}, which ${what}`, key);
}

async function sourceOf(reference: FileReference, { mounts, ownFiles }: Secrets): Promise<FileSource> {
  if (!mounts.some((mount) => isBelow(reference.path, mount))) throw failure(reference, 'is not below a folder of server.secrets.mounts');
  let target: string | undefined;
  try {
    target = await resolveBelow(reference.path, mounts);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw failure(reference, code === 'ENOENT' || code === 'ENOTDIR' ? 'does not exist' : `cannot be read (${code})`);
  }
  if (target === undefined) throw failure(reference, 'is a link out of its mount');
  // A folder of identities counts with all that is in it.
  const isOwn = ownFiles.some((own) => target === own || isBelow(target, own));
  if (isOwn) throw failure(reference, 'is a file of the server itself');
  return { listed: reference.path, path: target, optional: true };
}

function valueOf(reference: FileReference, bytes: Buffer | undefined): string {
  if (bytes === undefined) throw failure(reference, 'does not exist');
  const value = referencedValue(bytes);
  if (value === undefined) throw failure(reference, `is not text in UTF-8 of at most ${REFERENCED_BYTES_MAX / 1024 / 1024} MiB`);
  return value;
}

/** The failure of a referenced file is told about the key that refers to it. */
function asReferenceFailure(error: unknown, references: readonly FileReference[], targets: ReadonlyMap<string, FileSource>): unknown {
  if (!(error instanceof LoadFailure)) return error;
  const reference = references.find(({ path }) => error.origin === `file ${targets.get(path)!.listed}`);
  return reference === undefined ? error : failure(reference, error.message.replace(/^the file /, ''));
}
