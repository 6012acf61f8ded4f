import { isAbsolute, resolve } from 'node:path';
import { defaultPrefix } from '../document/environment.ts';
import { FILE_EXTENSIONS, isSupportedExtension } from '../document/formats.ts';
import { sectionKey, type FileSource, type SectionDefinition } from '../section/definition.ts';
import { insideRepository, type GitFolder } from './read-git.ts';
import { isSegment } from './segment-shape.ts';
import { isList, isRawTable, type TableReader } from './table-reader.ts';

const SHAPE = 'must be 1 to 64 characters of A-Z a-z 0-9 . _ - starting with a letter or digit, or no request could reach it';

export interface SectionsRead {
  readonly sections: readonly SectionDefinition[];
  /** Where server.toml defines each of them, such as `server.sections[2]`. */
  readonly tables: ReadonlyMap<SectionDefinition, string>;
  /** The profiles of every application, also of sections that have a problem: a grant of one of those is no second problem. */
  readonly named: NamedSections;
}

/** Profiles by application. */
export type NamedSections = ReadonlyMap<string, ReadonlySet<string>>;

export function readSections(server: TableReader, folder: string, git: GitFolder | 'unusable' | undefined): SectionsRead {
  const readers = server.tables('sections');
  if (readers.length === 0 && isList(server.value('sections')))
    server.problem('sections', 'no section is configured; add at least one [[server.sections]] table');
  const sections: SectionDefinition[] = [];
  const tables = new Map<SectionDefinition, string>();
  const named = new Map<string, Set<string>>();
  const explainLines = server.boolean('explain_lines', false);
  const firstTables = new Map<string, string>();
  for (const reader of readers) {
    recordNames(reader, named);
    const read = readSection(reader, { folder, git });
    if (read === undefined) continue;
    const section = explainLines ? { ...read, explainLines } : read;
    const key = sectionKey(section.application, section.profile);
    const first = firstTables.get(key);
    if (first === undefined) firstTables.set(key, reader.name);
    else reader.problem('profile', `the section ${key} is configured twice, first at ${first}; remove one or change its profile`);
    sections.push(section);
    tables.set(section, reader.name);
  }
  checkPrefixes(server, sections);
  return { sections, tables, named };
}

function recordNames(reader: TableReader, named: Map<string, Set<string>>): void {
  const application = reader.value('application');
  const profile = reader.value('profile');
  if (typeof application !== 'string' || application === '') return;
  const profiles = named.get(application) ?? new Set();
  named.set(application, profiles);
  const hasProfile = typeof profile === 'string' && profile !== '';
  if (hasProfile) profiles.add(profile);
  reader.describes(hasProfile ? `section ${sectionKey(application, profile)}` : `application ${application}`);
}

function readSection(reader: TableReader, base: Base): SectionDefinition | undefined {
  const application = readSegment(reader, 'application');
  const profile = readSegment(reader, 'profile');
  const files = readFiles(reader, base);
  const wholeDocument = reader.boolean('whole_document', false);
  const schemaPath = reader.string('schema');
  const schema = schemaPath === undefined ? undefined : locate(reader, 'schema', schemaPath, false, base);
  const envPrefix = reader.string('env_prefix') ?? defaultPrefix(application ?? '');
  if (/[=\0]/.test(envPrefix)) reader.problem('env_prefix', 'cannot hold "=": no environment variable could match it');
  reader.finish();
  if (application === undefined || profile === undefined) return undefined;
  return { application, profile, files, wholeDocument, envPrefix, schema };
}

function readSegment(reader: TableReader, key: string): string | undefined {
  const name = reader.requiredString(key);
  if (name === undefined || isSegment(name)) return name;
  reader.problem(key, SHAPE);
  return undefined;
}

function readFiles(reader: TableReader, base: Base): FileSource[] {
  const entries = reader.value('files');
  if (!Array.isArray(entries) || entries.length === 0) {
    reader.problem('files', 'must be an array that lists at least one file');
    return [];
  }
  const files: FileSource[] = [];
  for (const [index, entry] of entries.entries()) {
    const file = readFile(reader, `files[${index}]`, entry, base);
    if (file !== undefined) files.push(file);
  }
  return files;
}

function readFile(reader: TableReader, key: string, entry: unknown, base: Base): FileSource | undefined {
  let listed: string | undefined;
  let optional = false;
  if (typeof entry === 'string' && entry !== '') listed = entry;
  else if (isRawTable(entry)) {
    const table = reader.nested(key, entry);
    listed = table.requiredString('path');
    optional = table.boolean('optional', false);
    table.finish();
  } else reader.problem(key, 'must be a path, or { path = "…", optional = true }');
  if (listed === undefined) return undefined;
  if (!isSupportedExtension(listed)) {
    reader.problem(key, `the extension of ${listed} is not supported; use one of ${FILE_EXTENSIONS.join(', ')}`);
    return undefined;
  }
  return locate(reader, key, listed, optional, base);
}

/** Where paths of sections are looked up. With `[git]`, relative ones are in the repository and absolute ones on the disk. */
interface Base {
  readonly folder: string;
  readonly git: GitFolder | 'unusable' | undefined;
}

function locate(reader: TableReader, key: string, listed: string, optional: boolean, { folder, git }: Base): FileSource | undefined {
  if (git === undefined || isAbsolute(listed)) return { listed, path: resolve(folder, listed), optional };
  // The table [git] has a problem, which is reported; that its files cannot be found is not a second one.
  if (git === 'unusable') return undefined;
  const path = insideRepository(git.path, listed);
  if (path === undefined)
    reader.problem(key, `${listed} leads out of the repository; use a path inside it, or an absolute path for a file of this machine`);
  return path === undefined ? undefined : { listed, path, optional, git: git.repository };
}

/**
 * One variable must not reach two sections by two names: that would hand one service's secret, or production's, to another.
 * Sections of one application may share a prefix, which is the default; then each variable means the same key in all of them.
 */
function checkPrefixes(server: TableReader, sections: readonly SectionDefinition[]): void {
  const owners = new Map<string, SectionDefinition>();
  for (const section of sections) {
    const owner = `${section.envPrefix}\0${section.application}`;
    if (!owners.has(owner)) owners.set(owner, section);
  }
  const ordered = [...owners.values()].sort((a, b) => (a.envPrefix < b.envPrefix ? -1 : a.envPrefix > b.envPrefix ? 1 : 0));
  // In sorted order everything that extends a prefix directly follows it, so each entry only looks ahead while it matches.
  for (const [index, section] of ordered.entries()) {
    for (let next = index + 1; next < ordered.length && ordered[next]!.envPrefix.startsWith(section.envPrefix); next++) {
      const other = ordered[next]!;
      server.problem(
        'sections',
        `the environment prefixes of ${describePrefix(section)} and ${describePrefix(other)} overlap; set env_prefix on one of them`,
      );
    }
  }
}

function describePrefix({ application, profile, envPrefix }: SectionDefinition): string {
  return `section ${sectionKey(application, profile)} (${envPrefix})`;
}
