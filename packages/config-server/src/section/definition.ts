import type { GitRepository } from '../git/git-repository.ts';

export interface FileSource {
  /** As the operator wrote it; shown in origins and messages. */
  readonly listed: string;
  /** Absolute, or relative to the root of the repository when `git` is there. */
  readonly path: string;
  /** The file may be missing. */
  readonly optional: boolean;
  /** The repository that the file is read from; absent for a file on disk. */
  readonly git?: GitRepository;
}

/** One section as server.toml describes it. */
export interface SectionDefinition {
  /** The first segment of the URL. */
  readonly application: string;
  /** The second segment of the URL. */
  readonly profile: string;
  /** Merged in this order: later files win. */
  readonly files: readonly FileSource[];
  /** Files have the document itself, not a table per application. */
  readonly wholeDocument: boolean;
  /** Variables with this prefix win over files. */
  readonly envPrefix: string;
  /** A JSON Schema that the document must satisfy. */
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

/** What changes when a repository gets objects that the section could not find in it. */
export function arrivalPaths({ files, schema }: SectionDefinition): readonly string[] {
  return (files.find(({ git }) => git !== undefined) ?? schema)?.git?.arrivalPaths ?? [];
}

export function sameDefinition(a: SectionDefinition, b: SectionDefinition): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
