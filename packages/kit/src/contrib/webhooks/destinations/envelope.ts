import { flag, required, rule } from '../../../options/value-rule.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';

/** An event, as it is packed for its receivers. */
export interface PackedEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: Date;
  /** JSON text of an object, as `publish` stored it. */
  readonly data: string;
  readonly orderingKey: string | null;
}

export interface Packed {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes that are sent. */
  readonly body: Buffer;
}

/** How an event becomes a body and its headers. */
export interface Envelope {
  /** The format: the body of webhooks, or the structured or binary mode of CloudEvents. */
  readonly mode: 'webhook' | 'structured' | 'binary';
  /** Returns the body and the headers of an event. */
  pack(event: PackedEvent): Packed;
}

/** The body of the specification: `type`, `timestamp`, `data`. The same bytes for every receiver and every attempt. */
export const webhookEnvelope: Envelope = Object.freeze({
  mode: 'webhook',
  pack: ({ type, timestamp, data }: PackedEvent) => ({
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(`{"type":"${type}","timestamp":"${timestamp.toISOString()}","data":${data}}`),
  }),
} as const);

export interface CloudEventsOptions {
  /** Where the events come from: a URI, or a path such as `/orders`. With the id it identifies an event. */
  readonly source: string;
  /** Sends the attributes as `ce-…` headers and the data alone as the body. Default: false; everything is one JSON document. */
  readonly binary?: boolean;
}

/** RFC 3986: what a URI reference is made of. */
const URI_REFERENCE = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]{1,2000}$/;

const rules: OptionRules<CloudEventsOptions> = {
  source: required(rule('a URI or a path, such as "/orders"', (value) => typeof value === 'string' && URI_REFERENCE.test(value))),
  binary: flag,
};

/** Packs events as CloudEvents 1.0: `webhooks({ envelope: cloudEvents({ source: '/orders' }) })`, or for one destination. */
export function cloudEvents(options: CloudEventsOptions): Envelope {
  const { source, binary = false } = readOptions('cloudEvents()', options, rules);
  return Object.freeze({
    mode: binary ? 'binary' : 'structured',
    pack: (event: PackedEvent) => (binary ? packBinary(source, event) : packStructured(source, event)),
  } as const);
}

function attributesOf(source: string, { id, type, timestamp, orderingKey }: PackedEvent): Readonly<Record<string, string>> {
  const attributes = { specversion: '1.0', id, source, type, time: timestamp.toISOString() };
  return orderingKey === null ? attributes : { ...attributes, partitionkey: orderingKey };
}

function packStructured(source: string, event: PackedEvent): Packed {
  const head = JSON.stringify({ ...attributesOf(source, event), datacontenttype: 'application/json' });
  return {
    headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
    body: Buffer.from(`${head.slice(0, -1)},"data":${event.data}}`),
  };
}

function packBinary(source: string, event: PackedEvent): Packed {
  const attributes = Object.entries(attributesOf(source, event)).map(([name, value]) => [`ce-${name}`, headerValue(value)]);
  return { headers: { 'content-type': 'application/json', ...Object.fromEntries(attributes) }, body: Buffer.from(event.data) };
}

/** As the HTTP binding of CloudEvents writes values: printable ASCII without space, `"` and `%`; the rest as percent-encoded UTF-8. */
function headerValue(value: string): string {
  return value
    .toWellFormed()
    .replaceAll(/[^\x21-\x7e]|["%]/gu, (character) =>
      [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    );
}
