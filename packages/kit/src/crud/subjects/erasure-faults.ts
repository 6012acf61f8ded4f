import type { App } from '../../app/declare/module.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import type { Fault } from '../../options/fault.ts';
import { subjectPlans } from './subject-plans.ts';

/** E038: an erasure that cannot end stops the start of an app that erases. */
export function erasureFaults(app: App, kind: SubjectKind): Fault[] {
  const faults = new Set(subjectPlans(app, kind).flatMap(({ plan }) => plan.faults));
  return [...faults].map((fault) => ({ id: 'E038', message: `A ${kind} cannot be erased: ${fault}.` }));
}
