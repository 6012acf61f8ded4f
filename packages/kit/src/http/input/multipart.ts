import type { Readable } from 'node:stream';
import type * as BusboyPackage from '@fastify/busboy';
import { coreErrors } from '../../errors/core-errors.ts';
import { onDemand } from '../../options/on-demand.ts';
import { readOptions } from '../../options/read-options.ts';
import { filledText, flag, listOf, wholeNumber } from '../../options/value-rule.ts';
import { compileCoercions, type Coercion } from '../json/coerce.ts';
import { unknownField } from '../json/unknown-fields.ts';
import { takesMediaType, type RawBody } from '../declare/raw.ts';
import { withRootDefinitions } from '../../db/values/root-definitions.ts';
import { isStorableText } from '../../db/values/storable-text.ts';
import { type JsonSchema, type OutputOf, partSchemaOf, type Schema, type SchemaIssue, type SchemaResult } from '../declare/schema.ts';

const busboy = onDemand<typeof BusboyPackage>('@fastify/busboy');

/** A file of a form, whole and in memory. For large files use signed uploads. */
export interface MultipartFile {
  /** As the client named it; never a path to write to. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

export interface FilePartOptions {
  /** Most bytes of this file. Default: the limit of the whole body. */
  readonly bytesMax?: number;
  /** `text/csv`, `image/*`. Default: any. What the client says, not what the bytes are. */
  readonly mediaTypes?: readonly string[];
  /** The file may be missing. Default: false. */
  readonly optional?: boolean;
}

export interface FilePart<Optional extends boolean = boolean> {
  readonly isFilePart: true;
  readonly optional: Optional;
  readonly bytesMax: number | undefined;
  readonly mediaTypes: readonly string[] | undefined;
}

export type MultipartParts = Readonly<Record<string, FilePart | Schema>>;

type PartValue<P> =
  P extends FilePart<infer Optional> ? (Optional extends true ? MultipartFile | undefined : MultipartFile) : OutputOf<Extract<P, Schema>>;
type PartValues<P extends MultipartParts> = { readonly [K in keyof P]: PartValue<P[K]> };

export interface MultipartSchema<P extends MultipartParts = MultipartParts> extends Schema<PartValues<P>> {
  readonly rawBody: RawBody;
}

const MULTIPART = 'multipart/form-data';

/**
 * A form with files as request body: `body: multipart({ file: filePart({ bytesMax: 1_000_000 }), title: z.string() })`. Limits hold while the
 * body arrives. Fields are text that the schema's JSON types are read from, as in a query string.
 *
 * @example
 * ```ts
 * const Photo = multipart({ file: filePart({ mediaTypes: ['image/*'] }), title: z.string() });
 *
 * class PhotoController extends Controller {
 *   add = route.post('/', { permission: isAuthenticated, body: Photo }, ({ body }) => savePhoto(body.file.bytes, body.title));
 * }
 * ```
 */
export function multipart<const P extends MultipartParts>(
  parts: P,
  options: {
    /** Most bytes of the whole body. Default: the limit of the app. */
    readonly bytesMax?: number;
  } = {},
): MultipartSchema<P> {
  const { bytesMax } = readOptions('multipart()', options, { bytesMax: wholeNumber(1) });
  const whole = (): JsonSchema => ({
    type: 'object',
    properties: Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, partJson(part)])),
    required: Object.entries(parts)
      .filter(([, part]) => !isFilePart(part) || !part.optional)
      .map(([name]) => name),
    additionalProperties: false,
  });
  const json = () => withRootDefinitions(whole());
  const read = (body: Readable, contentType: string) => readMultipart(body, contentType, parts);
  const rawBody: RawBody = Object.freeze({ mediaTypes: [MULTIPART], stream: true, bytesMax, read, json });
  return {
    rawBody,
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: (value) => ({ value: value as PartValues<P> }),
      jsonSchema: { input: json, output: json },
    },
  };
}

/** A part of {@link multipart} that is a file. */
export function filePart<const O extends FilePartOptions = { readonly optional: false }>(
  options?: O,
): FilePart<O['optional'] extends true ? true : false> {
  const {
    bytesMax,
    mediaTypes,
    optional = false,
  } = readOptions<FilePartOptions>('filePart()', options ?? {}, {
    bytesMax: wholeNumber(1),
    mediaTypes: listOf(filledText, { min: 1 }),
    optional: flag,
  });
  return Object.freeze({ isFilePart: true, optional: optional as never, bytesMax, mediaTypes });
}

function isFilePart(part: FilePart | Schema): part is FilePart {
  return (part as Partial<FilePart>).isFilePart === true;
}

function partJson(part: FilePart | Schema): JsonSchema {
  if (!isFilePart(part)) return partSchemaOf(part, 'input');
  const types = part.mediaTypes ?? ['application/octet-stream'];
  return { type: 'string', format: 'binary', contentMediaType: types.join(', ') };
}

/** Reads a form: every fault at once, with the name of its part. Rejects with what the whole request fails with: too large, malformed. */
export async function readMultipart(
  body: Readable,
  contentType: string,
  parts: MultipartParts,
): Promise<SchemaResult<Record<string, unknown>>> {
  const { files, fields, issues } = await collect(body, contentType, parts);
  const values: Record<string, unknown> = {};
  const refused = new Set(issues.map(({ path }) => path?.[0]));
  for (const [name, part] of Object.entries(parts)) {
    if (isFilePart(part)) {
      const file = files.get(name);
      if (file !== undefined) values[name] = file;
      else if (!part.optional && !refused.has(name)) issues.push({ code: 'required', message: 'Required: a file.', path: [name] });
      continue;
    }
    const given = fields.get(name);
    if (given === undefined && refused.has(name)) continue;
    const coercion = coercionOf(part);
    const value = given === undefined ? undefined : (coercion ?? ((texts) => texts))(given.length === 1 ? (given[0] as string) : given);
    const result = await part['~standard'].validate(value);
    if (result.issues === undefined) values[name] = result.value;
    else if (given === undefined) issues.push({ code: 'required', message: 'Required.', path: [name] });
    else for (const issue of result.issues) issues.push({ ...issue, path: [name, ...(issue.path ?? [])] });
  }
  return issues.length > 0 ? { issues } : { value: values };
}

function coercionOf(part: Schema): Coercion | null | undefined {
  return compileCoercions(withRootDefinitions({ type: 'object', properties: { value: partSchemaOf(part, 'input') } })).get('value');
}

interface Collected {
  readonly files: Map<string, MultipartFile>;
  readonly fields: Map<string, string[]>;
  readonly issues: SchemaIssue[];
}

/** A form has no use for more; each costs memory before anything is checked. */
const PARTS_MAX = 100;
const FIELD_BYTES_MAX = 100_000;
const UNSTORABLE = 'Text must not contain U+0000 or half of a surrogate pair.';

function collect(body: Readable, contentType: string, parts: MultipartParts): Promise<Collected> {
  const { promise, resolve, reject } = Promise.withResolvers<Collected>();
  const collected: Collected = { files: new Map(), fields: new Map(), issues: [] };
  const names = Object.keys(parts);
  const partOf = (name: string) => (Object.hasOwn(parts, name) ? parts[name] : undefined);
  const fail = (error: Error) => {
    body.unpipe();
    body.destroy();
    reject(error);
  };
  const refuse = (name: string, code: string, message: string) => collected.issues.push({ code, message, path: [name] });
  // Parts of one chunk begin before the ones ahead of them have ended.
  const begun = new Set<string>();
  const form = openForm(contentType, names.length);
  form.on('field', (name: string | undefined, value, nameTruncated, valueTruncated) => {
    if (name === undefined) return fail(unnamedPart());
    const part = partOf(name);
    if (part === undefined || nameTruncated) refuse(name.slice(0, 100), 'unknown_field', unknownField([], name, names).message);
    else if (isFilePart(part)) refuse(name, 'invalid_type', 'Send a file: a part with a file name.');
    else if (valueTruncated) fail(tooLarge(FIELD_BYTES_MAX));
    else if (!isStorableText(value)) refuse(name, 'invalid', UNSTORABLE);
    else collected.fields.set(name, [...(collected.fields.get(name) ?? []), value]);
  });
  form.on('file', (name: string | undefined, stream, filename, _encoding, mediaType) => {
    // A part that fails when the form does: the form says why.
    stream.on('error', () => undefined);
    if (name === undefined) return fail(unnamedPart());
    const part = partOf(name);
    const refused = (code: string, message: string) => {
      refuse(name.slice(0, 100), code, message);
      stream.resume();
    };
    if (part === undefined) return refused('unknown_field', unknownField([], name, names).message);
    if (!isFilePart(part)) return refused('invalid_type', 'Send text, not a file.');
    if (begun.has(name)) return refused('duplicate', 'Send one file.');
    begun.add(name);
    if (!isStorableText(filename ?? '')) return refused('invalid', UNSTORABLE);
    if (part.mediaTypes !== undefined && !takesMediaType(part.mediaTypes, mediaType))
      return refused('invalid', `Send ${part.mediaTypes.join(' or ')}.`);
    const chunks: Buffer[] = [];
    let left = part.bytesMax ?? Infinity;
    stream.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) fail(tooLarge(part.bytesMax as number));
      else chunks.push(chunk);
    });
    stream.on('end', () => collected.files.set(name, { name: filename ?? '', mediaType, bytes: Buffer.concat(chunks) }));
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
    form.on(limit, () => fail(coreErrors.malformed_body({ detail: `The form has more than ${PARTS_MAX} parts.` })));
  form.on('finish', () => resolve(collected));
  form.on('error', (error) =>
    fail(coreErrors.malformed_body({ detail: 'The form cannot be read: it ends too early, or a part is malformed.', cause: error })),
  );
  body.once('error', reject);
  body.pipe(form);
  return promise;
}

function openForm(contentType: string, partCount: number): BusboyPackage.BusboyInstance {
  const limits = { parts: Math.max(PARTS_MAX, partCount), fieldSize: FIELD_BYTES_MAX, fieldNameSize: 200, headerPairs: 20 };
  try {
    return new (busboy().Busboy)({ headers: { 'content-type': contentType }, limits });
  } catch (cause) {
    throw coreErrors.malformed_body({ detail: 'The Content-Type of the form has no boundary.', cause });
  }
}

/** The parser leaves out the name of a part that has none, whatever its types say. */
function unnamedPart(): Error {
  return coreErrors.malformed_body({ detail: 'The form has a part without a name.' });
}

function tooLarge(bytesMax: number): Error {
  return coreErrors.body_too_large({ extensions: { bytes_max: bytesMax } });
}
