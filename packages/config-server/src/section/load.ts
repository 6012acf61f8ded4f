import { extname } from 'node:path';
import { EncodedDocument } from '../document/encode.ts';
import { applyEnvironment, type Variable } from '../document/environment.ts';
import type { FileLayer, Layers } from '../document/explain.ts';
import { parseFile, toDocumentTable, type RawTable } from '../document/formats.ts';
import { joinKeyPath, splitKeyPath, valueAt } from '../document/key-path.ts';
import { LoadFailure } from '../document/load-failure.ts';
import { merge } from '../document/merge.ts';
import { KeyPositions } from '../document/position/key-positions.ts';
import { checkSchema } from '../document/schema-gate.ts';
import { emptyTable, type Table } from '../document/value.ts';
import { asynchronousFiles, type FileAccess } from '../file-access.ts';
import type { Commit } from '../git/commit.ts';
import { openFile, withValues, type OpenedFile, type ParsedFile } from '../secrets/open-secrets.ts';
import { readReferences } from '../secrets/read-references.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { FileSource, SectionDefinition } from './definition.ts';
import { readGitSources } from './read-git-sources.ts';
import { readSources, type Sources } from './read-sources.ts';

/** A resolved document that passed every check and can be installed. */
export interface LoadedDocument {
  readonly document: Table;
  readonly layers: Layers;
  readonly encoded: EncodedDocument;
  /** The commit that files were read from; absent when none came from Git. */
  readonly commit?: Commit;
  /** The JSON Schema that the document satisfies; absent when the section has none. */
  readonly schema?: Buffer;
}

/** What opens the secrets of a section, and who must know which files they are in. */
export interface SectionSecrets extends Secrets {
  /** Called with the files that a section refers to, before they are read: a change in between must not be lost. */
  readonly onReferences?: (paths: readonly string[]) => void;
}

/** Files that keep changing while they are read are taken as they are; a mount that keeps changing is a failed load. */
const REREADS_MAX = 5;

/** Files in listed order, then environment, then the schema. Throws a LoadFailure and nothing else. */
export async function loadDocument(
  definition: SectionDefinition,
  variables: readonly Variable[],
  access: FileAccess = asynchronousFiles,
  secrets?: SectionSecrets,
): Promise<LoadedDocument> {
  const { schema } = definition;
  const files = schema ? [...definition.files, schema] : definition.files;
  let read = await readAll(files, access);
  try {
    for (let reread = 1; ; reread++) {
      const parsed = parseFiles(definition, read.sources);
      if (secrets === undefined) return resolveDocument(definition, variables, read, parsed);
      const opened = await Promise.all(parsed.map((file) => openFile(file, secrets)));
      const references = opened.flatMap((file) => file.references);
      secrets.onReferences?.([...new Set(references.map(({ path }) => path))]);
      if (references.length === 0) return resolveDocument(definition, variables, read, readyFiles(parsed, opened));
      const again = await readReferences(references, secrets, (targets) => readAll([...files, ...targets], access));
      if (reread === REREADS_MAX && again.moved !== undefined) throw again.moved;
      if (reread === REREADS_MAX || (again.moved === undefined && sameContents(files, read.sources, again.read.sources))) {
        return resolveDocument(definition, variables, read, readyFiles(parsed, opened, again.values));
      }
      read = again.read;
    }
  } catch (error) {
    if (error instanceof LoadFailure) throw error;
    // A parser or walk failed in another way, such as a stack limit; its message may quote the file.
    throw new LoadFailure('parse', `file ${definition.files[0]!.listed}`, 'the files of this section cannot be turned into a document');
  }
}

/** The files of a section as they were read together. */
export interface SourcesRead {
  readonly sources: Sources;
  readonly commit?: Commit;
}

/** A parsed file of a section. */
interface SectionFile extends ParsedFile {
  readonly source: FileSource;
}

/** A file that is ready to be merged. */
interface ReadyFile extends SectionFile {
  readonly via?: ReadonlyMap<string, string>;
}

function parseFiles(definition: SectionDefinition, sources: Sources): SectionFile[] {
  return definition.files.flatMap((source) => {
    const bytes = sources.get(source);
    if (bytes === undefined) return [];
    const origin = `file ${source.listed}`;
    const table = definition.wholeDocument ? {} : { table: definition.application };
    return [{ source, path: source.path, origin, bytes, raw: parseFile(source.path, bytes, origin), ...table }];
  });
}

/** The opened files, with the values of their references by path. */
function readyFiles(
  parsed: readonly SectionFile[],
  opened: readonly OpenedFile[],
  values: ReadonlyMap<string, string> = new Map(),
): ReadyFile[] {
  return opened.map(({ raw, references, via }, index) => {
    const { source, path, origin, bytes } = parsed[index]!;
    const replaced = withValues(raw, new Map(references.map((reference) => [reference.key, values.get(reference.path)!])));
    return { source, path, origin, bytes, raw: replaced, via };
  });
}

function sameContents(files: readonly FileSource[], before: Sources, after: Sources): boolean {
  return files.every((file) => {
    const [a, b] = [before.get(file), after.get(file)];
    return a === undefined || b === undefined ? a === b : a.equals(b);
  });
}

/** Files of the disk as one consistent set, files of a repository from one commit. */
async function readAll(files: readonly FileSource[], access: FileAccess): Promise<SourcesRead> {
  const repository = files.find((file) => file.git !== undefined)?.git;
  const onDisk = files.filter((file) => file.git === undefined);
  if (repository === undefined) return { sources: await readSources(onDisk, access) };
  const committed = files.filter((file) => file.git !== undefined);
  const [sources, { commit, contents }] = await Promise.all([readSources(onDisk, access), readGitSources(repository, committed)]);
  return { sources: new Map([...sources, ...contents]), commit };
}

function resolveDocument(
  definition: SectionDefinition,
  variables: readonly Variable[],
  { sources, commit }: SourcesRead,
  ready: readonly ReadyFile[],
): LoadedDocument {
  const files = fileLayers(definition, ready, commit);
  const [first, ...rest] = files.map((layer) => layer.table);
  const { document, overrides } = applyEnvironment(rest.reduce(merge, first ?? emptyTable()), variables);
  const { schema } = definition;
  if (schema !== undefined) checkSchema(document, sources.get(schema)!, `schema ${schema.listed}`);
  const layers = { files, overrides, ...(definition.explainLines ? { showLines: true } : {}) };
  return {
    document,
    layers,
    encoded: new EncodedDocument(document),
    ...(commit === undefined ? {} : { commit }),
    ...(schema === undefined ? {} : { schema: sources.get(schema)! }),
  };
}

function fileLayers(definition: SectionDefinition, ready: readonly ReadyFile[], commit: Commit | undefined): FileLayer[] {
  const layers: FileLayer[] = [];
  const prefix = definition.wholeDocument ? [] : [definition.application];
  for (const { source, origin, bytes, raw, via } of ready) {
    const chosen = definition.wholeDocument ? raw : applicationTable(raw, definition.application, origin);
    if (chosen === undefined) continue;
    const table = toDocumentTable(chosen, origin);
    const positions = definition.explainLines ? { positions: keyPositions(definition, source, bytes) } : {};
    const committed = source.git === undefined || commit === undefined ? {} : { commit: commit.id };
    const secret = via === undefined || via.size === 0 ? {} : { via: viaInTable(via, table, prefix) };
    layers.push({ origin, table, ...positions, ...committed, ...secret });
  }
  if (layers.length === 0 && !definition.wholeDocument) throw noTable(definition);
  return layers;
}

/** The same by the paths of the document: without the table that is served, and an array for its elements. */
function viaInTable(via: ReadonlyMap<string, string>, table: Table, prefix: readonly string[]): ReadonlyMap<string, string> {
  const result = new Map<string, string>();
  for (const [path, how] of via) {
    const keys = splitKeyPath(path);
    if (prefix.some((key, index) => keys[index] !== key)) continue;
    result.set(joinKeyPath(leafKeys(table, keys.slice(prefix.length))), how);
  }
  return result;
}

function leafKeys(table: Table, keys: readonly string[]): readonly string[] {
  for (let length = 1; length < keys.length; length++) {
    const above = keys.slice(0, length);
    if (Array.isArray(valueAt(table, above))) return above;
  }
  return keys;
}

function keyPositions({ wholeDocument, application }: SectionDefinition, file: FileSource, bytes: Uint8Array): KeyPositions {
  return new KeyPositions(extname(file.path).toLowerCase(), bytes, wholeDocument ? [] : [application]);
}

function applicationTable(raw: RawTable, application: string, origin: string): RawTable | undefined {
  if (!Object.hasOwn(raw, application)) return undefined;
  const table = raw[application];
  if (typeof table === 'object' && table !== null && !Array.isArray(table) && !(table instanceof Date)) return table as RawTable;
  throw new LoadFailure('parse', origin, `key ${application} is not a table`);
}

function noTable(definition: SectionDefinition): LoadFailure {
  const [first] = definition.files as [FileSource, ...FileSource[]];
  return new LoadFailure(
    'missing',
    `file ${first.listed}`,
    `no listed file has a table named ${definition.application}; add one, or set whole_document = true to serve the files as they are`,
  );
}
