import { isMembers } from '../../options/value-rule.ts';
import { permissionTerms } from '../permission-text.ts';
import type { Report } from './document-change.ts';
import { followed, type Json } from './flat-schema.ts';

interface Secured {
  readonly document: Json;
  readonly operation: Json;
}

/** Who may call: the ways to authenticate, the scope, the permission. */
export function compareSecurity(before: Secured, after: Secured, report: Report): void {
  const [old, current] = [before, after].map(({ operation }) => text(operation['x-scope']));
  if (old !== current) {
    if (old === undefined) report('scope-required', 'scope', `${current} is required.`);
    else if (current === undefined) report('scope-dropped', 'scope', `${old} is no longer required.`);
    else report('scope-changed', 'scope', `is ${current}, was ${old}.`);
  }
  const [rule, now] = [before, after].map(({ operation, document }) => text(operation['x-permission'] ?? document['x-permission']));
  if (termsText(rule) !== termsText(now)) report('permission-changed', 'permission', `is ${now ?? 'none'}, was ${rule ?? 'none'}.`);
  // Where the document has `x-scope`, the scopes below the schemes repeat it.
  const isScoped = old !== undefined || current !== undefined;
  const [ways, waysNow] = [waysOf(before, isScoped), waysOf(after, isScoped)];
  for (const way of ways)
    if (!waysNow.some((other) => isWithin(other, way))) report('security-tightened', 'security', `${named(way)} is not enough any more.`);
  for (const way of waysNow)
    if (!ways.some((other) => isWithin(other, way))) report('security-loosened', 'security', `${named(way)} is enough now.`);
}

/** The same for the same parts, in any order. */
const termsText = (rule: string | undefined): string => (rule === undefined ? '' : permissionTerms(rule).toSorted().join(' & '));

/** One way to be admitted: all of these, as `scheme` or `scheme scope`. Empty without credentials. */
type Way = ReadonlySet<string>;

function waysOf({ document, operation }: Secured, leavesScopesOut: boolean): Way[] {
  const given = operation['security'] ?? document['security'];
  if (!Array.isArray(given) || given.length === 0) return [new Set()];
  return given.filter(isMembers).map((requirement) => {
    const way = new Set<string>();
    for (const [scheme, scopes] of Object.entries(requirement)) {
      way.add(scheme);
      if (!leavesScopesOut && Array.isArray(scopes)) for (const scope of scopes) way.add(`${scheme} with scope ${String(scope)}`);
    }
    return way;
  });
}

const isWithin = (part: Way, whole: Way): boolean => [...part].every((each) => whole.has(each));
const named = (way: Way): string => (way.size === 0 ? 'No authentication' : [...way].join(' and '));

/** How a credential is sent: the header, the cookie, the scheme. */
export function compareSchemes(base: Json, revision: Json, report: Report): void {
  const schemesOf = (document: Json) => {
    const { components } = document;
    const schemes = isMembers(components) ? components['securitySchemes'] : undefined;
    return Object.entries(isMembers(schemes) ? schemes : {}).map(([name, scheme]) => [name, sentAs(followed(scheme, document))] as const);
  };
  const current = new Map(schemesOf(revision));
  for (const [name, way] of schemesOf(base)) {
    const now = current.get(name);
    // A scheme that no operation uses any more is reported by those that used it.
    if (now !== undefined && now !== way) report('security-scheme-changed', `security ${name}`, `is ${now}, was ${way}.`);
  }
}

function sentAs({ type, in: place, name, scheme, openIdConnectUrl }: Json): string {
  const [kind = '', at = '', label = '', way = '', url] = [type, place, name, scheme, openIdConnectUrl].map(text);
  // Names of headers and schemes are the same in any case; those of cookies and parameters are not.
  if (kind === 'apiKey') return `${at} ${at === 'header' ? label.toLowerCase() : label}`;
  if (kind === 'http') return `http ${way.toLowerCase()}`;
  return url === undefined ? kind : `${kind} ${url}`;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
