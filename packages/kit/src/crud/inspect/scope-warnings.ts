import type { App } from '../../app/declare/module.ts';
import type { Fault } from '../../options/fault.ts';
import { mountedResourceOf } from '../serve/controller.ts';

/** Columns that usually say whose a row is. */
const OWNER = /^(?:owner|user|author|account|created_by)(?:_id)?$/;

/** W019: a resource shows every row, and its model has a column that looks like an owner. */
export function scopeWarnings(app: App): { readonly resource: string; readonly fault: Fault }[] {
  return app.controllers.flatMap((controller) => {
    const mounted = mountedResourceOf(controller);
    if (mounted === undefined) return [];
    const { name, model, options } = mounted.policy;
    const column = Object.keys(model.columns).find((each) => OWNER.test(each));
    if (options.unscoped !== true || column === undefined) return [];
    return [
      {
        resource: name,
        fault: {
          id: 'W019',
          message: `every caller of ${controller.constructor.name} sees every row of ${model.name}, which has the column ${column}.`,
          hint: `Give rows to their owner with owner: '${column}', or silence this check with a reason.`,
        },
      },
    ];
  });
}
