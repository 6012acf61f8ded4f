import type { AdminAction, AdminContext } from '../app/admin/declaration.ts';
import type { PortalAction, PortalBorrowedAction } from '../app/admin/portal-page.ts';
import type { AdminResult } from '../app/admin/shapes.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { isShown } from './access.ts';
import { portalErrors } from './errors.ts';

type Item = Readonly<Record<string, unknown>>;

/** Between the ids of a record and of the one that it is below: in neither of them. */
export const BELOW = '~';

/** A page, as far as its borrowed actions need it. */
export interface BorrowingPage {
  find(context: AdminContext, id: string): Promise<Item | null>;
  other(
    name: string,
  ): (BorrowingPage & { act(context: AdminContext, id: string, operation: string, body: object): Promise<Item> }) | undefined;
}

const OTHER = 'other';

/** An operation on a record of another page, which the person chooses in the dialog. */
export function borrowedAction(name: string, words: PortalBorrowedAction, page: BorrowingPage): AdminAction {
  const { label, confirm, tone = 'neutral', fieldLabel, page: of, operation, done } = words;
  return {
    name,
    label,
    tone,
    on: 'record',
    ...(confirm === undefined ? {} : { confirm }),
    fields: [{ name: OTHER, label: fieldLabel, kind: 'reference', of, required: true }],
    run: async (context, [id = ''], fields): Promise<AdminResult> => {
      if (!isShown(context, of)) throw portalErrors.portal_page_not_shown();
      const chosen = String(fields[OTHER]);
      const other = page.other(of);
      const [item, target] = await Promise.all([page.find(context, id), other?.find(context, chosen) ?? null]);
      if (item === null) throw coreErrors.not_found();
      if (other === undefined || target === null)
        throw coreErrors.validation_error({
          errors: [{ location: ['body', 'fields', OTHER], code: 'not_found', message: 'There is none with this id.' }],
        });
      const answer = await other.act(context, chosen, operation, words.body(item, target));
      return { message: done, id, ...madeBy(words, chosen, answer) };
    },
  };
}

/** The record that the action made, to show next. */
export function madeBy({ shows }: PortalAction, above: string, { id }: Item): Pick<AdminResult, 'next'> {
  return shows === undefined || typeof id !== 'string' ? {} : { next: { resource: shows, id: `${above}${BELOW}${id}` } };
}
