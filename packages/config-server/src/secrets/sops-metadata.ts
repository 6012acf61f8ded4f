import { DEFAULT_RULE, RULE_NAMES, type SopsRule } from './sops-rules.ts';
import type { OrderedTable } from './ordered-tree.ts';

/** The key of a document's metadata, beside the application's table. */
export const SOPS_KEY = 'sops';

export interface SopsRecipient {
  readonly recipient: string;
  /** The data key, encrypted for this recipient as an armored age file. */
  readonly enc: string;
}

export interface SopsMetadata {
  readonly age: readonly SopsRecipient[];
  readonly lastModified: string;
  readonly mac: string;
  readonly rule: SopsRule;
  readonly macOnlyEncrypted: boolean;
  /** Whether there are recipients of another kind, such as PGP or a cloud's KMS. */
  readonly otherRecipients: boolean;
}

const METADATA_KEYS = ['mac', 'lastmodified', 'version', 'age', 'key_groups', 'kms', 'pgp', 'gcp_kms', 'azure_kv', 'hc_vault'];

/** Whether the top level of a file is a SOPS document. An application may be called sops, and then has none of these keys. */
export function isSopsDocument(raw: Readonly<Record<string, unknown>>): boolean {
  if (!Object.hasOwn(raw, SOPS_KEY)) return false;
  const metadata = raw[SOPS_KEY];
  return typeof metadata === 'object' && metadata !== null && METADATA_KEYS.some((key) => Object.hasOwn(metadata, key));
}

/** The metadata, or a sentence about why they cannot be used. */
export function readSopsMetadata(tree: OrderedTable): SopsMetadata | string {
  const metadata = tree.get(SOPS_KEY);
  if (!(metadata instanceof Map)) return 'the metadata below sops must be a table';
  const get = (key: string): unknown => (metadata as OrderedTable).get(key);
  if (isFilled(get('key_groups'))) return 'the document uses key groups, which are not supported; use age recipients';
  if (isFilled(get('unencrypted_comment_regex')) || isFilled(get('encrypted_comment_regex'))) {
    return 'the document chooses encrypted values by comments, which is not supported; use encrypted_regex';
  }
  const age = recipientsOf(get('age'));
  if (age === undefined || age.length === 0) return 'the document has no age recipient; add one with: sops updatekeys';
  const [lastModified, mac] = [get('lastmodified'), get('mac')];
  if (typeof mac !== 'string' || typeof lastModified !== 'string') return 'the document has no MAC, so it cannot be verified';
  const rules = RULE_NAMES.flatMap((name) => (isFilled(get(name)) ? [{ name, pattern: String(get(name)) }] : []));
  if (rules.length > 1) return 'the document has more than one rule for what is encrypted; keep one of them';
  const macOnlyEncrypted = get('mac_only_encrypted') === true;
  // Kinds of recipients are lists, and sops gets new ones.
  const otherRecipients = [...(metadata as OrderedTable)].some(
    ([name, value]) => name !== 'age' && Array.isArray(value) && value.length > 0,
  );
  return { age, lastModified, mac, rule: rules[0] ?? DEFAULT_RULE, macOnlyEncrypted, otherRecipients };
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

function recipientsOf(value: unknown): SopsRecipient[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const recipients: SopsRecipient[] = [];
  for (const entry of value) {
    if (!(entry instanceof Map)) return undefined;
    const [recipient, enc] = [(entry as OrderedTable).get('recipient'), (entry as OrderedTable).get('enc')];
    if (typeof recipient !== 'string' || typeof enc !== 'string') return undefined;
    recipients.push({ recipient, enc });
  }
  return recipients;
}
