import type { Readable } from 'node:stream';
import type { Schema } from './schema.ts';

export type RawContent = string | Uint8Array | Readable;

/** A response that is not JSON: the handler returns text, bytes or a stream of this media type. */
export interface RawSchema extends Schema<RawContent> {
  readonly rawMediaType: string;
}

export function raw(mediaType: string): RawSchema {
  const json = () => ({ type: 'string', contentMediaType: mediaType });
  return {
    rawMediaType: mediaType,
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: (value) => ({ value: value as RawContent }),
      jsonSchema: { input: json, output: json },
    },
  };
}

export function rawMediaTypeOf(schema: Schema): string | undefined {
  return (schema as Partial<RawSchema>).rawMediaType;
}
