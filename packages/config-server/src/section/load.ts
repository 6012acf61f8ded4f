import { extname } from 'node:path';
import { EncodedDocument } from '../document/encode.ts';
import { applyEnvironment, type Variable } from '../document/environment.ts';
import type { FileLayer, Layers } from '../document/explain.ts';
import { parseFile, toDocumentTable, type RawTable } from '../document/formats.ts';
import { LoadFailure } from '../document/load-failure.ts';
import { merge } from '../document/merge.ts';
import { KeyPositions } from '../document/position/key-positions.ts';
import { checkSchema } from '../document/schema-gate.ts';
import { emptyTable, type Table } from '../document/value.ts';
import { asynchronousFiles, type FileAccess } from '../file-access.ts';
import type { Commit } from '../git/commit.ts';
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

/** Files in listed order, then environment, then the schema. Throws a LoadFailure and nothing else. */
export async function loadDocument(
  definition: SectionDefinition,
  variables: readonly Variable[],
  access: FileAccess = asynchronousFiles,
): Promise<LoadedDocument> {
  const { schema } = definition;
  const { sources, commit } = await readAll(schema ? [...definition.files, schema] : definition.files, access);
  try {
    return resolveDocument(definition, variables, sources, commit);
  } catch (error) {
    if (error instanceof LoadFailure) throw error;
    // A parser or walk failed in another way, such as a stack limit; its message may quote the file.
    throw new LoadFailure('parse', `file ${definition.files[0]!.listed}`, 'the files of this section cannot be turned into a document');
  }
}

/** Files of the disk as one consistent set, files of a repository from one commit. */
async function readAll(files: readonly FileSource[], access: FileAccess): Promise<{ sources: Sources; commit?: Commit }> {
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
  sources: Sources,
  commit: Commit | undefined,
): LoadedDocument {
  const files = fileLayers(definition, sources, commit);
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

function fileLayers(definition: SectionDefinition, sources: Sources, commit: Commit | undefined): FileLayer[] {
  const layers: FileLayer[] = [];
  for (const file of definition.files) {
    const bytes = sources.get(file);
    if (bytes === undefined) continue;
    const origin = `file ${file.listed}`;
    const raw = parseFile(file.path, bytes, origin);
    const chosen = definition.wholeDocument ? raw : applicationTable(raw, definition.application, origin);
    if (chosen === undefined) continue;
    const positions = definition.explainLines ? { positions: keyPositions(definition, file, bytes) } : {};
    const committed = file.git === undefined || commit === undefined ? {} : { commit: commit.id };
    layers.push({ origin, table: toDocumentTable(chosen, origin), ...positions, ...committed });
  }
  if (layers.length === 0 && !definition.wholeDocument) throw noTable(definition);
  return layers;
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
