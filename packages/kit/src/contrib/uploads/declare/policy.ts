import { InvalidOptions, objectOf, optionFaults, type OptionRules } from '../../../options/read-options.ts';
import { flag, guard, listOf, rule, wholeNumber } from '../../../options/value-rule.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { uploadErrors } from '../errors.ts';
import { allowsType, mediaType } from './media-type.ts';

/** What a controller accepts. */
export interface UploadPolicy {
  /** `image/png`, `image/*` (without SVG) or `*` + `/*`. Default: any type. */
  readonly contentTypes?: readonly string[];
  /** Default: 10 MiB. Maximum: 5 GiB, the largest object a store copies in one request. */
  readonly bytesMax?: number;
  /** How long a signed address works. Default: 600. */
  readonly expiresInSeconds?: number;
  /** How long after that an upload may still be completed. Default: 900. */
  readonly graceSeconds?: number;
  /** Whether every upload must say its SHA-256. */
  readonly requireChecksum?: boolean;
  /** What an owner may have in pending, quarantined and complete uploads together. */
  readonly quotaPerOwner?: { readonly bytes?: number; readonly count?: number };
  /** Size of the parts of a multipart upload: 5 MiB to 100 MiB. Default: 8 MiB. */
  readonly partBytes?: number;
}

export interface CompletePolicy {
  readonly contentTypes: readonly string[];
  readonly bytesMax: number;
  readonly expiresInSeconds: number;
  readonly graceSeconds: number;
  readonly requireChecksum: boolean;
  readonly quotaPerOwner: { readonly bytes: number | null; readonly count: number | null };
  readonly partBytes: number;
}

const MIB = 1024 * 1024;
export const BYTES_MAX = 5 * 1024 * MIB;
const PARTS_MAX = 10_000;
const WEEK_SECONDS = 604_800;

export const uploadPolicyRules: OptionRules<UploadPolicy> = {
  contentTypes: guard(
    listOf(
      rule('"image/png", "image/*" or "*/*"', (type) => typeof type === 'string' && /^(?:\*\/\*|[\w.+-]+\/(?:\*|[\w.+-]+))$/.test(type)),
      { min: 1 },
    ),
  ),
  bytesMax: wholeNumber(1, BYTES_MAX),
  expiresInSeconds: wholeNumber(1, WEEK_SECONDS),
  graceSeconds: wholeNumber(0, WEEK_SECONDS),
  requireChecksum: guard(flag),
  quotaPerOwner: guard(
    objectOf<NonNullable<UploadPolicy['quotaPerOwner']>>({ bytes: guard(wholeNumber(1)), count: guard(wholeNumber(1)) }),
  ),
  partBytes: wholeNumber(5 * MIB, 100 * MIB),
};

/** Complete and frozen; every fault is reported at once. */
export function readUploadPolicy(place: string, policy: UploadPolicy = {}): CompletePolicy {
  const faults = optionFaults(place, policy, uploadPolicyRules);
  const { contentTypes = ['*/*'], bytesMax = 10 * MIB, expiresInSeconds = 600, graceSeconds = 900 } = policy;
  const { requireChecksum = false, quotaPerOwner = {}, partBytes = 8 * MIB } = policy;
  if (faults.length === 0 && bytesMax / partBytes > PARTS_MAX)
    faults.push({ id: 'E011', message: `${place}: partBytes is too small: a file of bytesMax would have more than ${PARTS_MAX} parts.` });
  if (faults.length > 0) throw new InvalidOptions(faults);
  return Object.freeze({
    contentTypes: contentTypes.map((type) => type.toLowerCase()),
    bytesMax,
    expiresInSeconds,
    graceSeconds,
    requireChecksum,
    quotaPerOwner: { bytes: quotaPerOwner.bytes ?? null, count: quotaPerOwner.count ?? null },
    partBytes,
  });
}

export interface AnnouncedFile {
  readonly contentType: string;
  readonly size: number;
  readonly checksumSha256: string | null;
  readonly multipart: boolean;
}

/** Refuses what the policy does not accept, with every fault at once; returns the media type as it is stored and signed. */
export function acceptedType(policy: CompletePolicy, file: AnnouncedFile): string {
  const faults = new FaultCollector();
  collectFileFaults(policy, file, faults);
  faults.throwIfAny();
  return mediaType(file.contentType) as string;
}

/** Adds what the policy does not accept of the members that are given. */
export function collectFileFaults(
  policy: CompletePolicy,
  file: { readonly [K in keyof AnnouncedFile]: AnnouncedFile[K] | undefined },
  faults: FaultCollector,
): void {
  const { contentType, size, checksumSha256, multipart } = file;
  const at = (field: string, code: string, message: string) => ({ errors: [{ location: ['body', field], code, message }] });
  if (contentType !== undefined && !isAccepted(policy, contentType)) {
    const message = `Files of this type are not accepted here. Accepted: ${policy.contentTypes.join(', ')}.`;
    const details = at('content_type', 'type_not_allowed', message);
    faults.refuse(uploadErrors.type_not_allowed({ ...details, extensions: { allowed_types: policy.contentTypes } }));
  }
  if (size !== undefined && size > policy.bytesMax) {
    const details = at('size', 'upload_too_large', `The file is too large: ${policy.bytesMax} bytes at most.`);
    faults.refuse(uploadErrors.upload_too_large({ ...details, extensions: { bytes_max: policy.bytesMax } }));
  }
  if (multipart === true && typeof checksumSha256 === 'string')
    faults.add({
      location: ['body', 'checksum_sha256'],
      code: 'not_allowed',
      message: 'No store can check it for a multipart upload. Send the checksum of each part.',
    });
  if (policy.requireChecksum && checksumSha256 === null && multipart === false)
    faults.refuse(uploadErrors.checksum_required(at('checksum_sha256', 'checksum_required', 'A SHA-256 checksum is required here.')));
}

function isAccepted(policy: CompletePolicy, contentType: string): boolean {
  const type = mediaType(contentType);
  return type !== null && allowsType(policy.contentTypes, type);
}
