import { isSchema, jsonSchemaOf, type JsonSchema, type Schema } from '../../../http/declare/schema.ts';
import { isEventType } from './subscription.ts';
import { PublishRefused } from '../errors.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { anObject } from '../../../options/value-rule.ts';
import { stepsOf } from '../../../db/values/standard-schema.ts';

/** A declared type of event: `publish` takes its data typed, and checks it. */
export interface EventType<Data extends object = object> {
  /** `order.paid`. */
  readonly name: string;
  /** Checks and types the data of an event. */
  readonly schema: Schema<unknown, Data>;
  /** When the event is sent, and what it means. Empty by default. */
  readonly description: string;
  /** Data that matches the schema; null when there is none. */
  readonly example: Data | null;
  /** 2 for `order.paid.v2`, 1 for a name without a version. */
  readonly version: number;
  /** What to use instead, and until when it is sent; null: it is not deprecated. */
  readonly deprecated: string | null;
  /** What receivers get as `data`. */
  readonly jsonSchema: JsonSchema;
}

export interface EventTypeOptions<Data> {
  /** For those who subscribe: when it is sent, and what it means. */
  readonly description?: string;
  /** Must match the schema. */
  readonly example?: Data;
  /** What to use instead, and until when it is sent: `Use order.paid.v2. Sent until 1 May 2027.` */
  readonly deprecated?: string;
}

/**
 * Declares a type of event: `eventType('order.paid', schema, { description, example })`. List it in `webhooks({ eventTypes: […] })`. A change that breaks receivers
 * is a type of its own: `order.paid.v2` is version 2 of `order.paid`.
 */
export function eventType<Data extends object>(
  name: string,
  schema: Schema<unknown, Data>,
  options: EventTypeOptions<Data> = {},
): EventType<Data> {
  requireArguments('eventType()', { options }, { options: anObject });
  const { description = '', example, deprecated = null, ...unknown } = options;
  const where = `eventType(${JSON.stringify(name)})`;
  if (!isEventType(name)) throw new TypeError(`${where}: the name of an event is parts of letters, digits, "_" and "-", joined by dots.`);
  if (!isSchema(schema)) throw new TypeError(`${where}: the second argument is a schema, such as one of Zod or TypeBox.`);
  const [other] = Object.keys(unknown);
  if (other !== undefined) throw new TypeError(`${where}: there is no option "${other}"; there are description, example and deprecated.`);
  if (deprecated !== null && (typeof deprecated !== 'string' || deprecated.trim() === ''))
    throw new TypeError(`${where}: \`deprecated\` is a sentence: what to use instead, and until when it is sent.`);
  const fault = example === undefined ? null : faultOf(schema, example).fault;
  if (fault !== null) throw new TypeError(`${where}: the example does not match the schema: ${fault}`);
  const { version } = versionOf(name);
  return Object.freeze({
    name,
    schema,
    description,
    example: example ?? null,
    version,
    deprecated,
    jsonSchema: jsonSchemaOf(schema, 'output'),
  });
}

const VERSION = /^(.+)\.v([2-9]|[1-9][0-9]{1,3})$/;

/** A version is a part of the name: receivers see it in `type`, and choose it when they subscribe. */
function versionOf(name: string): { readonly of: string; readonly version: number } {
  const [, of = name, version = '1'] = VERSION.exec(name) ?? [];
  return { of, version: Number(version) };
}

/** The names of the versions of a type among others, the first one first. */
export function versionsOf(type: EventType, among: readonly EventType[]): readonly string[] {
  const { of } = versionOf(type.name);
  const versions = among.filter(({ name }) => versionOf(name).of === of);
  return versions.toSorted((a, b) => a.version - b.version).map(({ name }) => name);
}

/** The data as the schema returns it. */
export function checkedData({ name, schema }: EventType, data: unknown): object {
  const { value, fault } = faultOf(schema, data);
  if (fault === null) return value as object;
  throw new PublishRefused('data_invalid', `The data of "${name}" does not match its schema: ${fault}`);
}

/** Values are not part of the sentence: they may be personal. */
function faultOf(schema: Schema, data: unknown): { readonly value?: unknown; readonly fault: string | null } {
  const result = schema['~standard'].validate(data);
  if (result instanceof Promise) return { fault: 'it can be checked only asynchronously; use a schema without asynchronous parts.' };
  if (result.issues === undefined) return { value: result.value, fault: null };
  const issues = result.issues.map((issue) => `${['data', ...stepsOf(issue)].join('.')}: ${issue.message}`);
  return { fault: issues.join('; ') };
}

/** The `webhooks` of an OpenAPI document. */
export function openApiWebhooks(types: readonly EventType[], mode: EnvelopeMode = 'webhook'): Readonly<Record<string, object>> {
  return Object.fromEntries(types.map((type) => [type.name, { post: operationOf(type, mode) }]));
}

/** Of the envelope that endpoints get. */
type EnvelopeMode = 'webhook' | 'structured' | 'binary';

const EXAMPLE_TIME = '2026-01-01T00:00:00.000Z';
const text = { type: 'string' };

/** The body by the envelope: its media type, schema and example. */
function bodyOf({ name, example, jsonSchema }: EventType, mode: EnvelopeMode): readonly [mediaType: string, content: object] {
  const time = { type: 'string', format: 'date-time' };
  const members = {
    webhook: { type: { const: name }, timestamp: time, data: jsonSchema },
    structured: {
      specversion: { const: '1.0' },
      id: text,
      source: text,
      type: { const: name },
      time,
      datacontenttype: text,
      data: jsonSchema,
    },
  };
  const heads = {
    webhook: { type: name, timestamp: EXAMPLE_TIME },
    structured: { specversion: '1.0', id: '0198c5b0-0000-7000-8000-000000000000', source: '/', type: name, time: EXAMPLE_TIME },
  };
  if (mode === 'binary') return ['application/json', { schema: jsonSchema, ...(example === null ? {} : { example }) }];
  const properties = members[mode];
  return [
    mode === 'webhook' ? 'application/json' : 'application/cloudevents+json',
    {
      schema: { type: 'object', properties, required: Object.keys(properties) },
      ...(example === null ? {} : { example: { ...heads[mode], data: example } }),
    },
  ];
}

function operationOf(type: EventType, mode: EnvelopeMode): object {
  const { name, deprecated } = type;
  const description = [type.description, deprecated === null ? '' : `Deprecated: ${deprecated}`].filter((each) => each !== '').join(' ');
  const [mediaType, content] = bodyOf(type, mode);
  const header = (header: string, text: string): object => ({
    name: header,
    in: 'header',
    required: true,
    description: text,
    schema: { type: 'string' },
  });
  return {
    operationId: `webhook_${name.replaceAll(/[^A-Za-z0-9]/g, '_')}`,
    summary: name,
    ...(description === '' ? {} : { description }),
    ...(deprecated === null ? {} : { deprecated: true }),
    tags: ['webhooks'],
    parameters: [
      header('webhook-id', 'The same for every retry: deduplicate on it.'),
      header('webhook-timestamp', 'Unix time of this attempt, in seconds.'),
      header('webhook-signature', 'Signatures of `<id>.<timestamp>.<body>`, separated by spaces.'),
    ],
    requestBody: { required: true, content: { [mediaType]: content } },
    responses: { '2XX': { description: 'Received. Any other response, or a timeout, is retried.' } },
  };
}
