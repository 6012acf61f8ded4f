import { Readable } from 'node:stream';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError } from '../../errors/kit-error.ts';
import { requireStillAdmitted } from '../../http/admit/open-streams.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { filePart, type MultipartFile, readMultipart } from '../../http/input/multipart.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { type JsonSchema, type Schema } from '../../http/declare/schema.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { mediaTypes } from './export.ts';
import type { FileFormat } from '../options/file-options.ts';
import type { ImportOptions } from '../options/file-options.ts';
import { limits } from '../declare/limits.ts';
import type { Context, ListAccess } from '../read/list-access.ts';
import { type ImportTarget } from './import-item.ts';
import { type FixedIntent, type ImportResult, type ImportMode, RowImport } from './row-import.ts';

/** What the route of an import works with, besides what lists do. */
export interface ImportAccess extends ListAccess, Omit<ImportTarget, 'list'> {
  fixedIntent(context: Context): FixedIntent;
  /** Every row was authorized, also where there is none. */
  admitWithoutObject(context: Context): void;
}

interface Parameters extends ImportMode {
  readonly format: FileFormat | undefined;
}

/** `POST /import`. */
export class Importer {
  readonly #access: ImportAccess;
  readonly options: Required<Pick<ImportOptions, 'formats' | 'bytesMax' | 'rowsMax'>> & Pick<ImportOptions, 'by'>;

  constructor(access: ImportAccess, given: ImportOptions) {
    this.#access = access;
    this.options = { ...given, bytesMax: given.bytesMax ?? limits.importBytes, rowsMax: given.rowsMax ?? limits.importRows };
  }

  readonly handle = async (context: Context): Promise<ImportResult> => {
    const access = this.#access;
    const { policy } = access;
    const request = await access.request(context, 'create');
    const parameters = this.#parameters(context.query as QueryValues);
    await access.parentRows(context, request, policy.database(request), true);
    const { body, format } = await this.#file(context, parameters.format);
    const exchange = exchangeOf(context.request);
    const { inputLimits: json } = exchange.host;
    const rows = new RowImport(access, { ...this.options, json, requireAdmitted: (tx) => requireStillAdmitted(exchange, tx) });
    const result = await rows.run(request, body, format, parameters, access.fixedIntent(context));
    access.admitWithoutObject(context);
    if (parameters.isDryRun) context.reply.code(200);
    return result;
  };

  #parameters(given: QueryValues): Parameters {
    const { formats, by } = this.options;
    const faults: FieldError[] = [];
    const choices: Readonly<Record<string, readonly string[]>> = {
      format: formats,
      dry_run: ['true', 'false'],
      mode: by === undefined ? ['create'] : ['create', 'upsert'],
    };
    for (const [name, value] of Object.entries(given)) {
      const known = Object.hasOwn(choices, name) ? choices[name] : undefined;
      if (known === undefined)
        faults.push({
          location: ['query', name.slice(0, 100)],
          code: 'unknown_field',
          message: `Unknown parameter.${didYouMean(name, Object.keys(choices))}`,
        });
      else if (!known.includes(value as string))
        faults.push({ location: ['query', name], code: 'invalid', message: `Give one of ${known.join(', ')}.` });
    }
    if (faults.length > 0) throw coreErrors.validation_error({ errors: faults });
    return {
      format: given['format'] as FileFormat | undefined,
      isDryRun: given['dry_run'] === 'true',
      isUpsert: given['mode'] === 'upsert',
    };
  }

  get #usual(): FileFormat {
    return this.options.formats[0] as FileFormat;
  }

  /** The bytes of the file and its format: as the parameter says, else as the media type or the name does. */
  async #file(context: Context, wanted: FileFormat | undefined): Promise<{ readonly body: Readable; readonly format: FileFormat }> {
    const contentType = context.request.headers['content-type'] ?? '';
    const type = (contentType.split(';', 1)[0] as string).trim().toLowerCase();
    const { formats } = this.options;
    if (type !== 'multipart/form-data') {
      const format = wanted ?? formats.find((each) => mediaTypes[each] === type) ?? this.#usual;
      return { body: context.body as Readable, format };
    }
    const form = await readMultipart(context.body as Readable, contentType, { file: filePart() });
    if (form.issues !== undefined)
      throw coreErrors.validation_error({
        errors: form.issues.map(({ code = 'invalid', message, path = [] }) => ({ location: ['body', ...path.map(String)], code, message })),
      });
    const { name, mediaType, bytes } = form.value['file'] as MultipartFile;
    const named = formats.find((each) => mediaTypes[each] === mediaType) ?? (/\.(?:jsonl|ndjson)$/i.test(name) ? 'jsonl' : 'csv');
    const format = wanted ?? named;
    if (!formats.includes(format)) throw coreErrors.unsupported_media_type({ detail: `This operation takes ${formats.join(', ')}.` });
    return { body: Readable.from([bytes]), format };
  }
}

export function importParameters({ formats, by }: ImportOptions): Record<string, JsonSchema> {
  return {
    format: { type: 'string', enum: [...formats], description: 'Default: the media type of the request.' },
    dry_run: { type: 'boolean', default: false, description: 'Runs the import with all hooks, then rolls it back.' },
    mode: {
      type: 'string',
      enum: by === undefined ? ['create'] : ['create', 'upsert'],
      default: 'create',
      description: by === undefined ? 'Creates records.' : `\`upsert\` updates the record with the same \`${by}\` if it exists.`,
    },
  };
}

const count = { type: 'integer', minimum: 0 };
export const ImportSchema: Schema<ImportResult> = jsonSchema<ImportResult>({
  type: 'object',
  properties: {
    created: count,
    updated: count,
    dry_run: { type: 'boolean' },
    ignored: { type: 'array', items: { type: 'string' }, description: 'Columns that were ignored because clients cannot set them.' },
  },
  required: ['created', 'updated', 'dry_run', 'ignored'],
});
