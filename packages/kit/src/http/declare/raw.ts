import type { Readable } from 'node:stream';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { JsonSchema, Schema, SchemaResult } from './schema.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList, anObject } from '../../options/value-rule.ts';

export type RawContent = string | Uint8Array | Readable;

/** A response that is not JSON: the handler returns text, bytes or a stream of this media type. */
export interface RawSchema extends Schema<RawContent> {
  readonly rawMediaType: string;
}

export interface RawBodyOptions {
  /** The handler gets a `Readable` and reads it itself; else a `Buffer`, read before the handler runs. */
  readonly stream?: boolean;
  /** Most bytes of the body, checked while they arrive. Default: the route's `bodyBytesMax`. */
  readonly bytesMax?: number;
}

/** What a route takes instead of JSON. */
export interface RawBody {
  /** `text/csv`, `image/*` or `*\/*`, in lower case. */
  readonly mediaTypes: readonly string[];
  readonly stream: boolean;
  readonly bytesMax: number | undefined;
  /** Reads the stream before the handler runs: what the handler gets instead of it. */
  readonly read?: (body: Readable, contentType: string) => Promise<SchemaResult<unknown>>;
  /** What a form has in it, for documents. */
  readonly json?: () => JsonSchema;
}

/** A request body that is not JSON. */
export interface RawBodySchema<Body extends Readable | Buffer> extends Schema<Body> {
  readonly rawBody: RawBody;
}

type RawOf<M, S> = M extends string ? RawSchema : S extends true ? RawBodySchema<Readable> : RawBodySchema<Buffer>;

/**
 * A body that is not JSON. One media type is a response of text, bytes or a stream; a list of them is a request body, which the handler gets as a
 * `Buffer`, or with `stream: true` as a `Readable`.
 *
 * ```ts
 * class FileController extends Controller {
 *   report = route.get('/report', { permission: isAuthenticated, response: raw('application/pdf') }, () => renderPdf());
 *   photo = route.post('/photo', { permission: isAuthenticated, body: raw(['image/*'], { bytesMax: 5_000_000 }) }, ({ body }) =>
 *     savePhoto(body),
 *   );
 * }
 * ```
 */
export function raw<const M extends string | readonly string[], const S extends boolean = false>(
  mediaTypes: M,
  ...[options = {}]: M extends string ? [] : [options?: RawBodyOptions & { readonly stream?: S }]
): RawOf<M, S> {
  return rawSchema(mediaTypes, options) as RawOf<M, S>;
}

function rawSchema(mediaTypes: string | readonly string[], options: RawBodyOptions): RawSchema | RawBodySchema<Readable & Buffer> {
  if (typeof mediaTypes === 'string') return { rawMediaType: mediaTypes, ...binarySchema<RawContent>(mediaTypes) };
  requireArguments('raw()', { mediaTypes, options }, { mediaTypes: aList, options: anObject });
  const faults = rawBodyFaults(mediaTypes, options);
  if (faults.length > 0) throw new TypeError(`raw(): ${faults.join(' ')}`);
  const { stream = false, bytesMax } = options;
  const rawBody = Object.freeze({ mediaTypes: mediaTypes.map((type) => type.toLowerCase()), stream, bytesMax });
  return { rawBody, ...binarySchema<Readable & Buffer>(mediaTypes[0] ?? '*/*') };
}

function binarySchema<T>(mediaType: string): Schema<T> {
  const json = () => ({ type: 'string', contentMediaType: mediaType });
  return {
    '~standard': { version: 1, vendor: 'kit', validate: (value) => ({ value: value as T }), jsonSchema: { input: json, output: json } },
  };
}

const MEDIA_TYPE = /^(?:\*\/\*|[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+))$/;
const optionNames = ['stream', 'bytesMax'];

function rawBodyFaults(mediaTypes: readonly string[], options: RawBodyOptions): string[] {
  const faults = Object.keys(options)
    .filter((name) => !optionNames.includes(name))
    .map((name) => `unknown option "${name}".${didYouMean(name, optionNames)}`);
  if (mediaTypes.length === 0) faults.push('the list of media types is empty; name at least one, such as "text/csv".');
  for (const type of mediaTypes)
    if (typeof type !== 'string' || !MEDIA_TYPE.test(type))
      faults.push(`${JSON.stringify(type)} is not a media type; write "text/csv", "image/*" or "*/*".`);
  if (options.stream !== undefined && typeof options.stream !== 'boolean') faults.push('stream is true or false.');
  if (options.bytesMax !== undefined && !(Number.isSafeInteger(options.bytesMax) && options.bytesMax >= 1))
    faults.push(`bytesMax is ${options.bytesMax}; use an integer of 1 or more.`);
  return faults;
}

export function rawMediaTypeOf(schema: Schema): string | undefined {
  return (schema as Partial<RawSchema>).rawMediaType;
}

export function rawBodyOf(schema: Schema | undefined): RawBody | undefined {
  return (schema as Partial<RawBodySchema<Buffer>> | undefined)?.rawBody;
}

/** Whether one of the media ranges takes this `Content-Type`; its parameters do not matter. */
export function takesMediaType(mediaTypes: readonly string[], contentType: string | undefined): boolean {
  if (mediaTypes.includes('*/*')) return true;
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return mediaTypes.some((range) => range === type || (range.endsWith('/*') && type.startsWith(range.slice(0, -1))));
}
