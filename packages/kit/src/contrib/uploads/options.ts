import { InvalidOptions, type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, guard, isMembers, objectWith, required, secret, wholeNumber } from '../../options/value-rule.ts';
import { uploadPolicyRules } from './declare/policy.ts';
import type { Scan } from './declare/scanner.ts';
import type { UploadStore } from './declare/upload-store.ts';
import { readUrlKeys, URL_KEY_LENGTH_MIN } from './stores/url-signature.ts';

export interface UploadOptions {
  /** `diskStore({ folder })` or `s3Store({ … })`. */
  readonly store: UploadStore;
  /** Uploads wait in quarantine until this says they are clean. */
  readonly scan?: Scan;
  /** Keys of the disk store's addresses: the first signs, all verify. Default: the setting UPLOAD_URL_KEYS, else a secret of the installation. */
  readonly urlKeys?: readonly string[];
  /** How long a download address works. Default: 300. */
  readonly downloadSeconds?: number;
  /** How often this process scans, removes and cleans up. Default: 60; 0 leaves it to `kit uploads clean`. */
  readonly cleanEverySeconds?: number;
}

export interface UploadOptionsRead {
  readonly store: UploadStore;
  readonly scan: Scan | null;
  readonly urlKeys: readonly string[] | undefined;
  readonly downloadSeconds: number;
  readonly cleanEverySeconds: number;
}

const storeMethods = ['attach', 'presign', 'head', 'read', 'copy', 'remove', 'list', 'createMultipart'];

const rules: OptionRules<UploadOptions> = {
  store: required(objectWith('diskStore({ folder }) or s3Store({ … })', ...storeMethods)),
  scan: guard(aFunction),
  urlKeys: secret(
    `a list of keys of ${URL_KEY_LENGTH_MIN} or more random characters`,
    (keys) => Array.isArray(keys) && keyFault(keys) === null,
  ),
  downloadSeconds: wholeNumber(1, 604_800),
  cleanEverySeconds: wholeNumber(0, 86_400),
};

/** Complete and frozen; every fault is reported at once, and keys are never part of a message. */
export function readUploadOptions(options: UploadOptions): UploadOptionsRead {
  refusePolicy(options);
  const { store, scan, urlKeys, downloadSeconds = 300, cleanEverySeconds = 60 } = readOptions('uploads()', options, rules);
  return Object.freeze({ store, scan: scan ?? null, urlKeys, downloadSeconds, cleanEverySeconds });
}

/** The keys an app signs with, or what is wrong with them; null when there are none. */
export function urlKeysOf(
  option: readonly string[] | undefined,
  setting: string | undefined,
): readonly string[] | { readonly fault: string } | null {
  const keys = option ?? readUrlKeys(setting ?? '');
  if (keys.length === 0) return null;
  const fault = keyFault(keys);
  return fault === null ? keys : { fault };
}

function keyFault(keys: readonly unknown[]): string | null {
  if (keys.length > 0 && keys.every((key) => typeof key === 'string' && key.length >= URL_KEY_LENGTH_MIN)) return null;
  return `A key of UPLOAD_URL_KEYS has fewer than ${URL_KEY_LENGTH_MIN} characters; use 32 or more random ones.`;
}

/** What an upload may be is decided where it is created: each controller has a policy of its own. */
function refusePolicy(options: unknown): void {
  const given = isMembers(options) ? Object.keys(options).filter((name) => Object.hasOwn(uploadPolicyRules, name)) : [];
  if (given.length === 0) return;
  throw new InvalidOptions(
    given.map((name) => ({
      id: 'E001',
      message: `uploads(): "${name}" is an option of the policy of a controller.`,
      hint: `Move it: class extends UploadController { static override readonly policy = { ${name}: … } }.`,
    })),
  );
}
