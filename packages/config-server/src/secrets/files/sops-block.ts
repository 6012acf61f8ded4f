import { isMap, isScalar, parseDocument, stringify } from 'yaml';
import { SOPS_KEY, type SopsRecipient } from '../sops-metadata.ts';
import type { SopsRule } from '../sops-rules.ts';
import { formatOf } from './file-text.ts';
import { jsonPlaces } from './json-places.ts';
import { tomlHeaders } from './toml-places.ts';

/** The metadata that a new SOPS document gets. */
export interface NewMetadata {
  readonly age: readonly SopsRecipient[];
  readonly lastModified: string;
  readonly mac: string;
  readonly rule: SopsRule;
  readonly macOnlyEncrypted: boolean;
}

/** The version of sops whose format is written. */
const SOPS_VERSION = '3.9.0';

/** A file without its metadata, and the metadata as text. */
export interface SplitFile {
  readonly body: string;
  readonly block: string;
}

/** The metadata as the end of a file has them, indented like its body. */
export function sopsBlock(path: string, body: string, { age, lastModified, mac, rule, macOnlyEncrypted }: NewMetadata): string {
  const only = macOnlyEncrypted ? { mac_only_encrypted: true } : {};
  const table = { age, lastmodified: lastModified, mac, [rule.name]: rule.pattern, ...only, version: SOPS_VERSION };
  const format = formatOf(path);
  // Quoted as sops does: unquoted it is a timestamp for other parsers.
  if (format === 'yaml') return stringify({ [SOPS_KEY]: table }, { lineWidth: 0 }).replace(/^( *lastmodified: )(\S+)$/m, '$1"$2"');
  if (format === 'json') return `"${SOPS_KEY}": ${JSON.stringify(table, null, indentOf(body))}`;
  const scalars = Object.entries(table).flatMap(([key, value]) =>
    typeof value === 'object' ? [] : [`${key} = ${JSON.stringify(value)}\n`],
  );
  const recipients = age.map(
    ({ recipient, enc }) => `\n[[${SOPS_KEY}.age]]\nrecipient = ${JSON.stringify(recipient)}\nenc = """\n${enc}"""\n`,
  );
  return `[${SOPS_KEY}]\n${scalars.join('')}${recipients.join('')}`;
}

/** Puts metadata at the end of a file, with the line ends of the file. */
export function joinBlock(path: string, { body, block }: SplitFile): string {
  const lineEnd = body.includes('\r\n') ? '\r\n' : '\n';
  const lines = block.replaceAll(/\r?\n/g, lineEnd);
  if (formatOf(path) !== 'json') {
    const separator = formatOf(path) === 'toml' ? lineEnd : '';
    return `${body === '' || body.endsWith('\n') ? body : body + lineEnd}${body.trim() === '' ? '' : separator}${lines}`;
  }
  const close = body.lastIndexOf('}');
  const before = body.slice(0, close).trimEnd();
  const indent = indentOf(body);
  const indented = lines.replaceAll('\n', `\n${indent}`);
  return `${before}${before.endsWith('{') ? '' : ','}${lineEnd}${indent}${indented}${lineEnd}${body.slice(close)}`;
}

function indentOf(json: string): string {
  return /\n([ \t]+)"/.exec(json)?.[1] ?? '  ';
}

/** Takes the metadata of a SOPS document off. Undefined when they are written in a way that cannot be taken off. */
export function splitBlock(path: string, text: string): SplitFile | undefined {
  const format = formatOf(path);
  return format === 'json' ? splitJson(text) : format === 'toml' ? splitToml(text) : splitYaml(text);
}

function splitJson(text: string): SplitFile | undefined {
  const place = jsonPlaces(text).find(({ path }) => path.length === 1 && path[0] === SOPS_KEY);
  if (place === undefined) return undefined;
  const keyStart = text.lastIndexOf(`"${SOPS_KEY}"`, place.start);
  const before = text.slice(0, keyStart).trimEnd();
  const after = text.slice(place.end);
  const lines = text.slice(text.lastIndexOf('\n', keyStart) + 1, keyStart);
  const block = text.slice(keyStart, place.end).replaceAll(`\n${lines.trim() === '' ? lines : ''}`, '\n');
  // A file of one line was closed on its line.
  const close = before.includes('\n') ? after : after.replace(/^\s+(?=\})/, '');
  if (before.endsWith(',')) return { body: before.slice(0, -1) + close, block };
  return { body: before + after.replace(/^\s*,/, ''), block };
}

function splitYaml(text: string): SplitFile | undefined {
  const { contents } = parseDocument(text, { logLevel: 'error', uniqueKeys: false });
  if (!isMap(contents) || contents.flow === true) return undefined;
  const index = contents.items.findIndex(({ key }) => isScalar(key) && key.value === SOPS_KEY);
  const start = keyStart(contents.items[index]?.key);
  if (start === undefined) return undefined;
  const end = keyStart(contents.items[index + 1]?.key) ?? text.length;
  return { body: text.slice(0, start) + text.slice(end), block: text.slice(start, end) };
}

function keyStart(key: unknown): number | undefined {
  return isScalar(key) ? key.range?.[0] : undefined;
}

/** From a header of the metadata up to the next header of something else. */
function splitToml(text: string): SplitFile | undefined {
  let [body, block] = ['', ''];
  let at = 0;
  let inBlock = false;
  const takeUntil = (end: number): void => {
    if (inBlock) block += text.slice(at, end);
    else body += text.slice(at, end);
    at = end;
  };
  for (const { keys, start } of tomlHeaders(text)) {
    // With the blanks before it.
    takeUntil(text.lastIndexOf('\n', start) + 1);
    inBlock = keys[0] === SOPS_KEY;
  }
  takeUntil(text.length);
  // The blank line that was put before the metadata goes with them.
  return block === '' ? undefined : { body: body.replace(/(\r?\n)\r?\n$/, '$1'), block };
}
