import { LoadFailure } from '../document/load-failure.ts';
import type { Commit } from '../git/commit.ts';
import type { GitRepository, Snapshot } from '../git/git-repository.ts';
import type { FileSource } from './definition.ts';

export interface GitSources {
  readonly commit: Commit;
  readonly contents: ReadonlyMap<FileSource, Buffer>;
}

/** Reads files of a repository, all from one commit. An optional file that the commit does not have is absent from the result. */
export function readGitSources(repository: GitRepository, files: readonly FileSource[]): Promise<GitSources> {
  return repository.read(async (snapshot) => {
    const read = await Promise.all(files.map(async (file) => [file, await contentOf(file, snapshot)] as const));
    const contents = new Map<FileSource, Buffer>();
    for (const [file, content] of read) if (content !== undefined) contents.set(file, content);
    return { commit: snapshot.commit, contents };
  });
}

async function contentOf(file: FileSource, snapshot: Snapshot): Promise<Buffer | undefined> {
  const origin = `file ${file.listed}`;
  const entry = await snapshot.entry(file.path);
  if (entry === undefined) {
    if (file.optional) return undefined;
    const { id } = snapshot.commit;
    throw new LoadFailure('missing', origin, `the file is not in commit ${id}; commit it, or list it as { path = "…", optional = true }`);
  }
  if (entry.kind === 'file') return snapshot.content(entry, file.path);
  // A link could lead anywhere, and a submodule is another repository.
  throw new LoadFailure('io', origin, `the path leads to a ${entry.kind} in the repository, which is not followed; list a regular file`);
}
