/** How much a change matters to callers that were written against the older document. */
export type ChangeLevel = 'breaking' | 'warning' | 'additive';

/** The side of the server: input is what it accepts, output what it returns or sends. */
export type Direction = 'input' | 'output';

interface DiffRule {
  readonly level: ChangeLevel;
  readonly title: string;
  readonly reason: string;
}

/** The parts of a schema that can admit fewer or more values. Each is a family of four rules: both sides, both ways. */
const ASPECTS = {
  type: 'types',
  null: 'null',
  values: 'listed values (`enum`, `const`)',
  range: 'numbers (`minimum`, `maximum`, `multipleOf`)',
  length: 'text lengths',
  count: 'numbers of items or properties',
  pattern: 'texts by `pattern`',
  format: 'texts by `format`, media type or encoding',
  union: 'alternatives (`anyOf`, `oneOf`)',
  additional: 'properties that are not listed',
  condition: 'values by another keyword (`not`, `if`, `contains`, …)',
} as const;

export type Aspect = keyof typeof ASPECTS;
export type Trend = 'narrowed' | 'widened';
type AspectRuleId = `${Direction}-${Aspect}-${Trend}`;

function aspectRule(direction: Direction, aspect: Aspect, trend: Trend): DiffRule {
  const more = trend === 'widened' ? 'More' : 'Fewer';
  const title =
    aspect === 'null'
      ? `Null is ${trend === 'widened' ? 'now' : 'no longer'} ${direction === 'input' ? 'accepted' : 'returned'}`
      : `${more} ${ASPECTS[aspect]} are ${direction === 'input' ? 'accepted' : 'returned'}`;
  if (direction === 'input')
    return trend === 'narrowed'
      ? { level: 'breaking', title, reason: 'Requests that were valid may be rejected.' }
      : { level: 'additive', title, reason: 'Requests that were valid still are.' };
  // A caller ignores properties that it does not know, so an object may become open.
  if (trend === 'widened' && aspect !== 'additional') return { level: 'breaking', title, reason: 'Callers may not handle the new values.' };
  return {
    level: 'additive',
    title,
    reason: trend === 'widened' ? 'Callers ignore unknown properties.' : 'Callers already handle all of the values.',
  };
}

const aspectRules = Object.fromEntries(
  (['input', 'output'] as const).flatMap((direction) =>
    (Object.keys(ASPECTS) as Aspect[]).flatMap((aspect) =>
      (['narrowed', 'widened'] as const).map((trend) => [`${direction}-${aspect}-${trend}`, aspectRule(direction, aspect, trend)]),
    ),
  ),
) as Readonly<Record<AspectRuleId, DiffRule>>;

/** Every way in which two documents can differ. An id is a promise; docs/reference/openapi-diff.md is generated from this table. */
export const diffRules = {
  'operation-removed': { level: 'breaking', title: 'An operation was removed', reason: 'Callers get 404 or 405.' },
  'operation-removed-early': {
    level: 'breaking',
    title: 'An operation was removed before its sunset date',
    reason: 'Callers were told that it works until then.',
  },
  'operation-removed-after-sunset': {
    level: 'warning',
    title: 'A deprecated operation was removed after its sunset date',
    reason: 'The removal was announced; late callers get 404 or 405.',
  },
  'operation-added': { level: 'additive', title: 'An operation is new', reason: 'No client calls it yet.' },
  'operation-id-changed': {
    level: 'warning',
    title: 'An operation has another id',
    reason: 'Generated clients derive method names from it.',
  },
  'operation-deprecated': { level: 'warning', title: 'An operation is deprecated', reason: 'It still works; callers should migrate.' },
  'operation-undeprecated': { level: 'additive', title: 'An operation is no longer deprecated', reason: 'Callers may continue to use it.' },
  'sunset-earlier': {
    level: 'breaking',
    title: 'The sunset date of an operation is earlier',
    reason: 'Callers planned with the later date.',
  },
  'sunset-later': { level: 'additive', title: 'The sunset date of an operation is later or removed', reason: 'Callers have more time.' },
  'path-parameter-renamed': {
    level: 'warning',
    title: 'A path parameter has another name',
    reason: 'URLs are the same; generated clients name an argument after it.',
  },
  'parameter-removed': {
    level: 'breaking',
    title: 'A parameter was removed',
    reason: 'Unknown parameters are rejected: callers that send it get 422.',
  },
  'parameter-removed-after-sunset': {
    level: 'warning',
    title: 'A deprecated parameter was removed after its sunset date',
    reason: 'The removal was announced; late callers get 422.',
  },
  'parameter-added': { level: 'additive', title: 'An optional parameter is new', reason: 'No client sends it yet.' },
  'required-parameter-added': { level: 'breaking', title: 'A required parameter is new', reason: 'Callers do not send it.' },
  'parameter-became-required': { level: 'breaking', title: 'A parameter became required', reason: 'Some callers do not send it.' },
  'parameter-became-optional': { level: 'additive', title: 'A parameter became optional', reason: 'Callers may continue to send it.' },
  'parameter-style-changed': {
    level: 'breaking',
    title: 'A parameter is written in another style',
    reason: 'Values that callers send are read differently.',
  },
  'parameter-deprecated': {
    level: 'warning',
    title: 'A parameter is deprecated',
    reason: 'It still works; callers should stop sending it.',
  },
  'body-added': { level: 'breaking', title: 'An operation requires a body', reason: 'Callers send none.' },
  'optional-body-added': { level: 'additive', title: 'An operation accepts a body', reason: 'No client sends one yet.' },
  'body-removed': { level: 'breaking', title: 'An operation no longer accepts a body', reason: 'A body is rejected.' },
  'body-became-required': { level: 'breaking', title: 'A body became required', reason: 'Some callers send none.' },
  'body-became-optional': { level: 'additive', title: 'A body became optional', reason: 'Callers may continue to send it.' },
  'input-media-type-removed': { level: 'breaking', title: 'A media type is no longer accepted', reason: 'Callers that send it get 415.' },
  'input-media-type-added': { level: 'additive', title: 'Another media type is accepted', reason: 'No client sends it yet.' },
  'output-media-type-removed': {
    level: 'breaking',
    title: 'A media type is no longer returned',
    reason: 'Callers that request it get another one or 406.',
  },
  'output-media-type-added': { level: 'additive', title: 'Another media type is returned', reason: 'Only callers that request it get it.' },
  'response-removed': { level: 'breaking', title: 'A success status was removed', reason: 'Callers wait for it.' },
  'response-added': { level: 'warning', title: 'A success status is new', reason: 'Callers may not handle it.' },
  'response-header-removed': { level: 'breaking', title: 'A response header was removed', reason: 'Callers may read it.' },
  'response-header-added': { level: 'additive', title: 'A response header is new', reason: 'No client reads it yet.' },
  'response-header-optional': { level: 'breaking', title: 'A response header may be missing', reason: 'Callers rely on it.' },
  'response-header-required': { level: 'additive', title: 'A response header is always sent', reason: 'Callers lose nothing.' },
  'end-event-removed': {
    level: 'breaking',
    title: 'An event stream no longer ends with its event',
    reason: 'Clients take its end for a lost connection: they open it again, or fail.',
  },
  'end-event-added': { level: 'additive', title: 'An event stream ends with an event', reason: 'Clients that do not know it ignore it.' },
  'error-status-removed': {
    level: 'additive',
    title: 'An error status was removed',
    reason: 'Callers that handle it never see it, which breaks nothing.',
  },
  'error-status-added': { level: 'warning', title: 'An error status is new', reason: 'Callers may not handle it.' },
  'error-code-removed': {
    level: 'additive',
    title: 'An error code was removed',
    reason: 'Callers that handle it never see it, which breaks nothing.',
  },
  'error-code-added': { level: 'warning', title: 'An error code is new', reason: 'Callers do not handle it yet.' },
  'error-code-moved': { level: 'warning', title: 'An error code has another status', reason: 'Callers that decide by status miss it.' },
  'scope-required': { level: 'breaking', title: 'A scope is required', reason: 'Keys without the scope are rejected.' },
  'scope-dropped': { level: 'additive', title: 'A scope is no longer required', reason: 'All callers that were admitted still are.' },
  'scope-changed': { level: 'breaking', title: 'Another scope is required', reason: 'Keys with the old scope are rejected.' },
  'permission-changed': {
    level: 'warning',
    title: 'The permission changed',
    reason: 'Some callers may be denied who were admitted; a document cannot decide it.',
  },
  'security-tightened': {
    level: 'breaking',
    title: 'A way to authenticate is no longer accepted',
    reason: 'Callers that use it, or none, are rejected.',
  },
  'security-loosened': { level: 'additive', title: 'Another way to authenticate is accepted', reason: 'Callers need not change.' },
  'security-scheme-changed': {
    level: 'breaking',
    title: 'A credential is sent differently',
    reason: 'Callers send it in the old header, cookie or form.',
  },
  'throttle-added': { level: 'breaking', title: 'A rate limit is new', reason: 'Callers above the limit get 429.' },
  'throttle-tightened': { level: 'breaking', title: 'A rate limit is lower', reason: 'Callers above the new limit get 429.' },
  'throttle-loosened': { level: 'additive', title: 'A rate limit is higher', reason: 'Callers may send more.' },
  'throttle-removed': { level: 'additive', title: 'A rate limit was removed', reason: 'Callers may send more.' },
  'webhook-removed': { level: 'breaking', title: 'An event type was removed', reason: 'Receivers wait for it.' },
  'webhook-added': { level: 'additive', title: 'An event type is new', reason: 'No receiver subscribes to it yet.' },
  'server-removed': { level: 'warning', title: 'A server URL was removed', reason: 'Callers may use it.' },
  'server-added': { level: 'additive', title: 'A server URL is new', reason: 'No client uses it yet.' },
  'input-property-removed': {
    level: 'breaking',
    title: 'A property of a body was removed',
    reason: 'Unknown properties are rejected.',
  },
  'input-property-ignored': {
    level: 'warning',
    title: 'A property of an open body was removed',
    reason: 'It is still accepted, and has no documented effect.',
  },
  'input-property-added': { level: 'additive', title: 'An optional property of a body is new', reason: 'No client sends it yet.' },
  'input-property-required': { level: 'breaking', title: 'A property of a body is required', reason: 'Some callers do not send it.' },
  'input-property-optional': {
    level: 'additive',
    title: 'A property of a body became optional',
    reason: 'Callers may continue to send it.',
  },
  'input-default-changed': {
    level: 'warning',
    title: 'The default of a parameter or property changed',
    reason: 'Callers that do not send it get another result.',
  },
  'output-property-removed': { level: 'breaking', title: 'A property of a response was removed', reason: 'Callers may read it.' },
  'output-property-added': { level: 'additive', title: 'A property of a response is new', reason: 'Callers ignore unknown properties.' },
  'output-property-optional': { level: 'breaking', title: 'A property of a response may be missing', reason: 'Callers rely on it.' },
  'output-property-required': { level: 'additive', title: 'A property of a response is always present', reason: 'Callers lose nothing.' },
  'property-deprecated': { level: 'warning', title: 'A property is deprecated', reason: 'It still works; callers should migrate.' },
  'discriminator-changed': {
    level: 'breaking',
    title: 'Alternatives are told apart by another property',
    reason: 'Generated clients choose the type by it.',
  },
  ...aspectRules,
} as const satisfies Readonly<Record<string, DiffRule>>;

export type DiffRuleId = keyof typeof diffRules;
