// What a developer looks at when a receiver rejects a request: the portal runs it in the browser, so that no secret is sent anywhere.
import { DEFAULT_TOLERANCE_SECONDS, InvalidSignature, readMessage, type ReceivedMessage } from './received-message.ts';
import { InvalidSecret, verifySignature } from './verify-web.ts';
import { parseSecret } from '../signing/secret.ts';

/** One thing that a receiver checks. */
export interface SignatureCheck {
  readonly what: 'headers' | 'timestamp' | 'secret' | 'signature';
  /** `later` where it is right, but a receiver would reject it now. */
  readonly result: 'ok' | 'wrong' | 'later';
  /** What is right or wrong, and what to do. */
  readonly text: string;
}

export interface RecordedRequest {
  /** As a log or a browser shows them: one `name: value` in a line. */
  readonly headers: string;
  readonly body: string;
  /** What the receiver verifies with: `whsec_…` or `whpk_…`. */
  readonly secret: string;
}

const NAMES = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

/** Why a receiver accepts or rejects a request, check by check; it ends with the first that makes the others pointless. */
export async function explainSignature({ headers, body, secret }: RecordedRequest, now: Date): Promise<readonly SignatureCheck[]> {
  const read = headersOf(headers);
  const missing = NAMES.filter((name) => read[name] === undefined);
  if (missing.length > 0) {
    const others =
      Object.keys(read).length === 0
        ? ' Paste the headers as lines of `name: value`.'
        : ' A proxy or your framework may have removed them.';
    return [{ what: 'headers', result: 'wrong', text: `${list(missing)} ${missing.length === 1 ? 'is' : 'are'} missing.${others}` }];
  }
  let message: ReceivedMessage;
  const at = Number(read['webhook-timestamp']);
  try {
    message = readMessage(read, { now: Number.isFinite(at) ? at * 1000 : now });
  } catch (error) {
    if (!(error instanceof InvalidSignature)) throw error;
    return [{ what: error.reason === 'malformed_timestamp' ? 'timestamp' : 'headers', result: 'wrong', text: error.message }];
  }
  const checks: SignatureCheck[] = [
    { what: 'headers', result: 'ok', text: 'The three headers are there and can be read.' },
    timestampCheck(message.timestamp, now),
  ];
  const kind = secretKind(secret);
  if ('fault' in kind) return [...checks, { what: 'secret', result: 'wrong', text: kind.fault }];
  const versions = new Set(message.signatures.map(({ version }) => version));
  if (!versions.has(kind.version)) {
    const text = `The request has no ${kind.version} signature, which this ${kind.version === 'v1' ? 'secret' : 'public key'} verifies. Use the ${kind.version === 'v1' ? 'public key (`whpk_…`)' : 'secret (`whsec_…`)'} of the endpoint.`;
    return [...checks, { what: 'secret', result: 'wrong', text }];
  }
  checks.push({ what: 'secret', result: 'ok', text: 'The secret has the right form.' });
  return [...checks, await signatureCheck(read, body, secret.trim(), message.timestamp)];
}

function timestampCheck(timestamp: Date, now: Date): SignatureCheck {
  const seconds = Math.round((now.getTime() - timestamp.getTime()) / 1000);
  const minutes = DEFAULT_TOLERANCE_SECONDS / 60;
  if (Math.abs(seconds) <= DEFAULT_TOLERANCE_SECONDS)
    return { what: 'timestamp', result: 'ok', text: `The request was sent at ${timestamp.toISOString()}.` };
  const text =
    seconds > 0
      ? `The request was sent at ${timestamp.toISOString()}. A receiver rejects it now, after ${minutes} minutes; that is no fault of a request that you check later.`
      : `The request was sent at ${timestamp.toISOString()}, which is in the future. The clock of this computer or of the sender is wrong.`;
  return { what: 'timestamp', result: seconds > 0 ? 'later' : 'wrong', text };
}

function secretKind(secret: string): { readonly version: 'v1' | 'v1a' } | { readonly fault: string } {
  try {
    const { kind } = parseSecret(secret.trim());
    if (kind === 'private') return { fault: 'This is the private key of a sender. Verify with the public key (`whpk_…`).' };
    return { version: kind === 'public' ? 'v1a' : 'v1' };
  } catch (error) {
    if (error instanceof InvalidSecret) return { fault: error.message };
    throw error;
  }
}

/** What receivers do to a body before they verify it. */
const CHANGES: readonly (readonly [change: string, made: (body: string) => string | null])[] = [
  ['a line break at its end was added', (body) => (body.endsWith('\n') ? body.replace(/\r?\n$/, '') : null)],
  ['whitespace around it was added', (body) => (body.trim() === body ? null : body.trim())],
  ['line breaks were turned into CR LF', (body) => (body.includes('\r\n') ? body.replaceAll('\r\n', '\n') : null)],
  ['it was parsed and written again as JSON', rewritten],
];

function rewritten(body: string): string | null {
  try {
    const text = JSON.stringify(JSON.parse(body));
    return text === body ? null : text;
  } catch {
    return null;
  }
}

async function signatureCheck(headers: Readonly<Record<string, string>>, body: string, secret: string, now: Date): Promise<SignatureCheck> {
  const matches = (text: string): Promise<boolean> => verifySignature(secret, headers, text, { now }).then(() => true, isNoMatch);
  if (await matches(body))
    return { what: 'signature', result: 'ok', text: 'The signature is right: the request is genuine and unchanged.' };
  for (const [change, made] of CHANGES) {
    const other = made(body);
    if (other !== null && (await matches(other)))
      return {
        what: 'signature',
        result: 'wrong',
        text: `The secret is right, but the body is not the one that was signed: ${change}. Verify the raw bytes, before anything reads them.`,
      };
  }
  const text =
    'No signature matches. The secret is of another endpoint, or was rotated since; or the body, `webhook-id` or `webhook-timestamp` was changed.';
  return { what: 'signature', result: 'wrong', text };
}

function isNoMatch(error: unknown): false {
  if (error instanceof InvalidSignature && error.reason === 'no_matching_signature') return false;
  throw error;
}

/** Lines of headers, also as `curl -v` and `-H` write them; of a repeated one both, as Node joins them. */
function headersOf(text: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of text.split(/\r?\n/)) {
    const [, name, value] = /^\s*(?:[<>*]\s*)?(?:-H\s+)?["']?([\w-]+)["']?\s*:\s*(.*?)\s*\\?\s*$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    const key = name.toLowerCase();
    const unquoted = value.replace(/,$/, '').replaceAll(/^["']|["']$/g, '');
    found[key] = key in found ? `${found[key]}, ${unquoted}` : unquoted;
  }
  return { ...found };
}

const list = (names: readonly string[]): string => new Intl.ListFormat('en').format(names.map((name) => `\`${name}\``));
