import { isSegment } from './segment-shape.ts';

/** One entry of `applications`: every profile of an application, or a single one. */
export interface Grant {
  readonly application: string;
  readonly profile: string | undefined;
}

/** `billing` or `billing/production`; undefined when the text is neither. */
export function parseGrant(text: string): Grant | undefined {
  const [application = '', profile, ...rest] = text.split('/');
  if (rest.length > 0 || !isSegment(application) || (profile !== undefined && !isSegment(profile))) return undefined;
  return { application, profile };
}

/**
 * Whether entries of `applications` cover a section, given by its application and its key `application/profile`. Both lookups
 * always happen, so the time taken does not tell a caller what kind of grant it has.
 */
export function isGranted(grants: ReadonlySet<string>, application: string, key: string): boolean {
  const toApplication = grants.has(application);
  const toProfile = grants.has(key);
  return toApplication || toProfile;
}
