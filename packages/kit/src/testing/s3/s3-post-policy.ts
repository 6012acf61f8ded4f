import { policySignatureMatches, type KnownKey, type Refusal } from './s3-signature.ts';

/** A browser's form: its fields by name in lower case, and the file. */
export interface PostedForm {
  readonly fields: ReadonlyMap<string, string>;
  readonly file: Buffer;
}

/** `multipart/form-data`, read strictly: the file comes last. */
export function readForm(contentType: string, body: Buffer): PostedForm | null {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/.exec(contentType);
  const mark = boundary?.[1] ?? boundary?.[2];
  if (mark === undefined) return null;
  const fields = new Map<string, string>();
  let rest = body.indexOf(`--${mark}\r\n`);
  while (rest !== -1) {
    const start = rest + mark.length + 4;
    const headEnd = body.indexOf('\r\n\r\n', start);
    const end = body.indexOf(`\r\n--${mark}`, headEnd);
    if (headEnd === -1 || end === -1) return null;
    const name = /name="([^"]*)"/.exec(body.toString('utf8', start, headEnd))?.[1] ?? '';
    const content = body.subarray(headEnd + 4, end);
    if (name === 'file') return { fields, file: content };
    fields.set(name.toLowerCase(), content.toString('utf8'));
    rest = end + 2;
  }
  return null;
}

type Condition = Readonly<Record<string, string>> | readonly [string, unknown, unknown];

const denied = (message: string): Refusal => ({ status: 403, code: 'AccessDenied', message });

/** Every condition must hold, and every field must be covered by one. */
export function refuseForm({ fields, file }: PostedForm, bucket: string, key: KnownKey, now: Date): Refusal | null {
  const policy = fields.get('policy') ?? '';
  if (!policySignatureMatches(policy, fields.get('x-amz-signature') ?? '', fields.get('x-amz-credential') ?? '', key))
    return { status: 403, code: 'SignatureDoesNotMatch', message: 'The signature of the policy does not match.' };
  const { expiration, conditions } = JSON.parse(Buffer.from(policy, 'base64').toString('utf8')) as {
    expiration: string;
    conditions: Condition[];
  };
  if (Date.parse(expiration) < now.getTime()) return denied('Invalid according to Policy: Policy expired.');
  const covered = new Set(['policy', 'x-amz-signature', 'file']);
  const value = (name: string) => (name === 'bucket' ? bucket : fields.get(name));
  for (const condition of conditions) {
    if (!Array.isArray(condition)) {
      for (const [name, expected] of Object.entries(condition as Readonly<Record<string, string>>)) {
        covered.add(name.toLowerCase());
        if (value(name.toLowerCase()) !== expected)
          return denied(`Invalid according to Policy: Policy Condition failed: ["eq", "$${name}", "${expected}"]`);
      }
      continue;
    }
    const [kind, first, second] = condition as readonly [string, unknown, unknown];
    if (kind === 'content-length-range') {
      if (file.length < Number(first))
        return { status: 400, code: 'EntityTooSmall', message: 'Your proposed upload is smaller than the minimum allowed size.' };
      if (file.length > Number(second))
        return { status: 400, code: 'EntityTooLarge', message: 'Your proposed upload exceeds the maximum allowed size.' };
      continue;
    }
    const name = String(first).replace(/^\$/, '').toLowerCase();
    covered.add(name);
    const given = value(name) ?? '';
    const holds = kind === 'eq' ? given === second : kind === 'starts-with' && given.startsWith(String(second));
    if (!holds) return denied(`Invalid according to Policy: Policy Condition failed: ["${kind}", "$${name}", "${String(second)}"]`);
  }
  const extra = [...fields.keys()].find((name) => !covered.has(name) && !name.startsWith('x-ignore-'));
  return extra === undefined ? null : denied(`Invalid according to Policy: Extra input fields: ${extra}`);
}
