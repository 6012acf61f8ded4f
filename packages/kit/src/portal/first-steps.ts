import type { AdminContext } from '../app/admin/declaration.ts';
import type { AdminOverview, AdminStep } from '../app/admin/sections.ts';
import type { PortalPage } from '../app/admin/portal-page.ts';
import { isShown } from './access.ts';

/** A page of the portal, as far as its step needs it. */
export interface SteppedPage {
  readonly page: Pick<PortalPage, 'name' | 'step'>;
  readonly isCreatable: boolean;
  /** Null: this caller may not see the list. */
  hasRecords(context: AdminContext, parameters: Readonly<Record<string, string>>): Promise<boolean | null>;
}

/** What somebody does who begins, checked off by what the API has of this caller. Nothing once all of it is done. */
export async function firstSteps(pages: readonly SteppedPage[], context: AdminContext): Promise<AdminOverview> {
  const stepped = pages
    .flatMap((each) => (each.page.step === undefined || !isShown(context, each.page.name) ? [] : [{ each, step: each.page.step }]))
    .toSorted((a, b) => a.step.place - b.step.place);
  const asked = stepped.map(async ({ each, step }): Promise<AdminStep[]> => {
    const isDone = await each.hasRecords(context, step.parameters ?? {});
    if (isDone === null) return [];
    const page = each.isCreatable && !isDone ? 'create' : 'list';
    return [{ title: step.title, text: step.text, isDone, at: { resource: each.page.name, page } }];
  });
  const steps = (await Promise.all(asked)).flat();
  const rest = { title: 'First steps', tiles: [], charts: [], tables: [] };
  return steps.every(({ isDone }) => isDone) ? rest : { ...rest, steps };
}
