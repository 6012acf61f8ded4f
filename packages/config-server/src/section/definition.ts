import type { GitRepository } from '../git/git-repository.ts';

export interface FileSource {
  /** As the operator wrote it; shown in origins and messages. */
  readonly listed: string;
  /** Absolute, or relative to the root of the repository when `git` is there. */
  readonly path: string;
  readonly optional: boolean;
  readonly git?: GitRepository;
}

/** One section as server.toml describes it. */
export interface SectionDefinition {
  readonly application: string;
  readonly profile: string;
  readonly files: readonly FileSource[];
  readonly wholeDocument: boolean;
  readonly envPrefix: string;
  readonly schema: FileSource | undefined;
  /** Whether explanations show the line and column of a key. Absent: no. */
  readonly explainLines?: boolean;
}

export function sectionKey(application: string, profile: string): string {
  return `${application}/${profile}`;
}

/** Every file whose change may change the section. */
export function watchedPaths(definition: SectionDefinition): string[] {
  const files = [...definition.files, ...(definition.schema ? [definition.schema] : [])];
  return [...new Set(files.flatMap(({ git, path }) => git?.watchedPaths ?? [path]))];
}

export function sameDefinition(a: SectionDefinition, b: SectionDefinition): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
