import { resolve } from 'node:path';
import { defaultPrefix } from '../document/environment.ts';
import { FILE_EXTENSIONS, isSupportedExtension } from '../document/formats.ts';
import { sectionKey, type FileSource, type SectionDefinition } from '../section/definition.ts';
import { isSegment } from './segment-shape.ts';
import { isList, isRawTable, TableReader } from './table-reader.ts';

const SHAPE = 'must be 1 to 64 characters of A-Z a-z 0-9 . _ - starting with a letter or digit, or no request could reach it';

export interface SectionsRead {
  readonly sections: readonly SectionDefinition[];
  /** Where server.toml defines each of them, such as `server.sections[2]`. */
  readonly tables: ReadonlyMap<SectionDefinition, string>;
  /** Every application named, also by sections that have a problem: a grant of one of these is not a mistake of its own. */
  readonly applications: ReadonlySet<string>;
}

export function readSections(server: TableReader, folder: string): SectionsRead {
  const readers = server.tables('sections');
  if (readers.length === 0 && isList(server.value('sections')))
    server.problem('sections', 'no section is configured; add at least one [[server.sections]] table');
  const sections: SectionDefinition[] = [];
  const tables = new Map<SectionDefinition, string>();
  const applications = new Set<string>();
  const seen = new Set<string>();
  for (const reader of readers) {
    const named = reader.value('application');
    if (typeof named === 'string') applications.add(named);
    const section = readSection(reader, folder);
    if (section === undefined) continue;
    const key = sectionKey(section.application, section.profile);
    if (seen.has(key)) reader.problem('profile', `the section ${key} is configured twice`);
    seen.add(key);
    sections.push(section);
    tables.set(section, reader.name);
  }
  checkPrefixes(server, sections);
  return { sections, tables, applications };
}

function readSection(reader: TableReader, folder: string): SectionDefinition | undefined {
  const application = readSegment(reader, 'application');
  const profile = readSegment(reader, 'profile');
  const files = readFiles(reader, folder);
  const wholeDocument = reader.boolean('whole_document', false);
  const schemaPath = reader.string('schema');
  const schema = schemaPath === undefined ? undefined : { listed: schemaPath, path: resolve(folder, schemaPath), optional: false };
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

function readFiles(reader: TableReader, folder: string): FileSource[] {
  const entries = reader.value('files');
  if (!Array.isArray(entries) || entries.length === 0) {
    reader.problem('files', 'must be an array that lists at least one file');
    return [];
  }
  const files: FileSource[] = [];
  for (const [index, entry] of entries.entries()) {
    const file = readFile(reader, `files[${index}]`, entry, folder);
    if (file !== undefined) files.push(file);
  }
  return files;
}

function readFile(reader: TableReader, key: string, entry: unknown, folder: string): FileSource | undefined {
  let listed: string | undefined;
  let optional = false;
  if (typeof entry === 'string' && entry !== '') listed = entry;
  else if (isRawTable(entry)) {
    const problems = { push: (problem: { key: string; message: string }) => reader.problem(`${key}.${problem.key}`, problem.message) };
    const table = new TableReader('', entry, problems as never);
    listed = table.requiredString('path');
    optional = table.boolean('optional', false);
    table.finish();
  } else reader.problem(key, 'must be a path, or { path = "…", optional = true }');
  if (listed === undefined) return undefined;
  if (!isSupportedExtension(listed)) {
    reader.problem(key, `the extension of ${listed} is not supported; use one of ${FILE_EXTENSIONS.join(', ')}`);
    return undefined;
  }
  return { listed, path: resolve(folder, listed), optional };
}

/** One variable must not be able to reach two applications: that would hand one service's secret to another. */
function checkPrefixes(server: TableReader, sections: readonly SectionDefinition[]): void {
  const owners = new Map<string, string>();
  for (const { application, envPrefix } of sections) owners.set(`${envPrefix}\0${application}`, application);
  const entries = [...owners].map(([key, application]) => ({ prefix: key.slice(0, key.indexOf('\0')), application }));
  entries.sort((a, b) => (a.prefix < b.prefix ? -1 : a.prefix > b.prefix ? 1 : 0));
  // In sorted order everything that extends a prefix directly follows it, so each entry only looks ahead while it matches.
  for (const [index, { prefix, application }] of entries.entries()) {
    for (let next = index + 1; next < entries.length && entries[next]!.prefix.startsWith(prefix); next++) {
      const other = entries[next]!;
      if (other.application === application) continue;
      server.problem(
        'sections',
        `the environment prefixes of ${application} (${prefix}) and ${other.application} (${other.prefix}) overlap; set env_prefix on one of them`,
      );
    }
  }
}
