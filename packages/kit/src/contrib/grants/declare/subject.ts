import { isUuid } from '../../../db/values/uuid.ts';
import { IDENTITY_LENGTH_MAX } from '../../../db/values/identity-length.ts';

/** Subjects that are not one user or group; allowed where the declaration of the model says so. */
export const WIDE_SUBJECTS = ['tenant', 'authenticated', 'public'] as const;
/** Everyone in the object's tenant, every signed-in user, everybody. */
export type WideSubject = (typeof WIDE_SUBJECTS)[number];

/** `user:<id>`, `group:<id>`, or one of the wide ones. */
export type SubjectText = string;

export type ParsedSubject =
  | { readonly kind: 'user' | 'group'; readonly id: string }
  | { readonly kind: WideSubject; readonly id?: undefined };

/** With `group:` before the id. */
export const SUBJECT_LENGTH_MAX = 'group:'.length + IDENTITY_LENGTH_MAX;

/** Undefined when the text is no subject. Ids that are UUIDs are compared in lower case. */
export function parseSubject(text: unknown): ParsedSubject | undefined {
  if (typeof text !== 'string') return undefined;
  if ((WIDE_SUBJECTS as readonly string[]).includes(text)) return { kind: text as WideSubject };
  const [, kind, id] = /^(user|group):(.+)$/s.exec(text) ?? [];
  if (kind === undefined || id === undefined || id.length > IDENTITY_LENGTH_MAX || /[\p{Cc}\s]/u.test(id)) return undefined;
  return { kind: kind as 'user' | 'group', id: isUuid(id) ? id.toLowerCase() : id };
}

export function subjectText({ kind, id }: ParsedSubject): SubjectText {
  return id === undefined ? kind : `${kind}:${id}`;
}

export function userSubject(id: string): SubjectText {
  return subjectText({ kind: 'user', id: isUuid(id) ? id.toLowerCase() : id });
}
