/** How much a change matters to callers that were written against the older document. */
export type ChangeLevel = 'breaking' | 'warning' | 'additive';

interface DiffRule {
  readonly level: ChangeLevel;
  readonly title: string;
  readonly reason: string;
}

/** What two documents may differ in. An id is a promise; docs/reference/openapi-diff.md is generated from this table. */
export const diffRules = {
  'operation-removed': { level: 'breaking', title: 'An operation is gone', reason: 'Callers get a 404 or 405.' },
  'operation-added': { level: 'additive', title: 'An operation is new', reason: 'No client calls it yet.' },
  'operation-id-changed': {
    level: 'warning',
    title: 'An operation has another id',
    reason: 'Generated clients name their methods after it.',
  },
  'operation-deprecated': { level: 'warning', title: 'An operation is deprecated', reason: 'It still works; callers should move on.' },
  'parameter-removed': {
    level: 'breaking',
    title: 'A parameter is gone',
    reason: 'Unknown parameters are refused: callers that send it get a 422.',
  },
  'parameter-added': { level: 'additive', title: 'An optional parameter is new', reason: 'No client sends it yet.' },
  'required-parameter-added': { level: 'breaking', title: 'A required parameter is new', reason: 'Callers do not send it.' },
  'parameter-became-required': { level: 'breaking', title: 'A parameter became required', reason: 'Some callers do not send it.' },
  'parameter-became-optional': { level: 'additive', title: 'A parameter became optional', reason: 'Callers may go on sending it.' },
  'body-added': { level: 'breaking', title: 'An operation wants a body', reason: 'Callers send none.' },
  'body-removed': { level: 'breaking', title: 'An operation takes no body any more', reason: 'A body is refused.' },
  'media-type-removed': { level: 'breaking', title: 'A media type is gone', reason: 'Callers that send or expect it are refused.' },
  'media-type-added': { level: 'additive', title: 'A media type is new', reason: 'No client requests it yet.' },
  'response-removed': { level: 'breaking', title: 'A success status is gone', reason: 'Callers wait for it.' },
  'response-added': { level: 'warning', title: 'A success status is new', reason: 'Callers may not know what to do with it.' },
  'response-header-removed': { level: 'breaking', title: 'A response header is gone', reason: 'Callers may read it.' },
  'response-header-added': { level: 'additive', title: 'A response header is new', reason: 'No client reads it yet.' },
  'error-code-removed': {
    level: 'additive',
    title: 'An error code is gone',
    reason: 'Callers that handle it never see it, which breaks nothing.',
  },
  'error-code-added': { level: 'warning', title: 'An error code is new', reason: 'Callers do not handle it yet.' },
  'scope-changed': { level: 'breaking', title: 'Another scope is needed', reason: 'Keys with the old scope are refused.' },
  'permission-changed': { level: 'warning', title: 'Another permission decides', reason: 'Some callers may be refused who were not.' },
  'input-narrowed': { level: 'breaking', title: 'Less is accepted', reason: 'What callers send may be refused.' },
  'input-widened': { level: 'additive', title: 'More is accepted', reason: 'What callers send still is.' },
  'input-property-removed': { level: 'breaking', title: 'A member of a body is gone', reason: 'Unknown members are refused.' },
  'input-property-added': { level: 'additive', title: 'An optional member of a body is new', reason: 'No client sends it yet.' },
  'input-property-required': { level: 'breaking', title: 'A member of a body is required', reason: 'Some callers do not send it.' },
  'input-property-optional': { level: 'additive', title: 'A member of a body became optional', reason: 'Callers may go on sending it.' },
  'output-widened': { level: 'breaking', title: 'Other values are returned', reason: 'Callers do not know them.' },
  'output-narrowed': { level: 'additive', title: 'Fewer values are returned', reason: 'Callers know all of them.' },
  'output-property-removed': { level: 'breaking', title: 'A member of a response is gone', reason: 'Callers may read it.' },
  'output-property-added': { level: 'additive', title: 'A member of a response is new', reason: 'Callers ignore what they do not know.' },
  'output-property-optional': { level: 'breaking', title: 'A member of a response may be missing', reason: 'Callers rely on it.' },
  'output-property-required': { level: 'additive', title: 'A member of a response is always there', reason: 'Callers lose nothing.' },
} as const satisfies Readonly<Record<string, DiffRule>>;

export type DiffRuleId = keyof typeof diffRules;
