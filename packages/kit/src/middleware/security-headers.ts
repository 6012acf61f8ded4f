import type { Middleware } from '../http/exchange/middleware.ts';
import { objectOf, type OptionRules, readOptions } from '../options/read-options.ts';
import { flag, nullable, recordOf, text, wholeNumber } from '../options/value-rule.ts';

export interface SecurityHeadersOptions {
  /**
   * `Strict-Transport-Security`. Only sent over TLS unless `always`: say so when a proxy in front ends the TLS.
   * `false` never sends it.
   */
  readonly strictTransport?:
    | false
    | {
        /** How long browsers remember to use HTTPS. Default: a year. */
        readonly maxAgeSeconds?: number;
        /** Also for all subdomains. Default: true. */
        readonly includeSubDomains?: boolean;
        /** Also on connections without TLS, because a proxy in front ends the TLS. Default: false. */
        readonly always?: boolean;
      };
  /** Headers to add, replace, or leave out with `null`. */
  readonly headers?: Readonly<Record<string, string | null>>;
}

/** For answers that are data: nothing in them may run, be framed, be sniffed as another type or be read by another site. */
const DEFAULTS: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/** One year, what browsers' preload lists ask for. */
const HSTS_SECONDS = 31_536_000;

const transportRule = objectOf<Exclude<SecurityHeadersOptions['strictTransport'], false | undefined>>({
  maxAgeSeconds: wholeNumber(0),
  includeSubDomains: flag,
  always: flag,
});
const rules: OptionRules<SecurityHeadersOptions> = {
  strictTransport: (value, place, name) => (value === false ? [] : transportRule(value, place, name)),
  headers: recordOf(nullable(text)),
};

/** Sets safe headers on every answer, errors included. A header the handler set itself is kept. */
export function securityHeaders(options: SecurityHeadersOptions = {}): Middleware {
  readOptions('securityHeaders()', options, rules);
  const chosen: Record<string, string | null> = { ...DEFAULTS };
  for (const [name, value] of Object.entries(options.headers ?? {})) chosen[name.toLowerCase()] = value;
  const fixed = Object.entries(chosen).filter((entry): entry is [string, string] => entry[1] !== null);
  const transport = options.strictTransport ?? {};
  const hsts =
    transport === false
      ? undefined
      : `max-age=${transport.maxAgeSeconds ?? HSTS_SECONDS}${transport.includeSubDomains === false ? '' : '; includeSubDomains'}`;
  const always = transport !== false && transport.always === true;
  return {
    name: 'security_headers',
    onResponse({ reply, request, principal }) {
      for (const [name, value] of fixed) if (!reply.hasHeader(name)) reply.header(name, value);
      const encrypted = always || 'encrypted' in request.raw.socket;
      if (hsts !== undefined && encrypted && !reply.hasHeader('strict-transport-security')) reply.header('strict-transport-security', hsts);
      // What one caller may see must not be kept by a cache that serves another.
      if (principal !== null && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    },
  };
}
