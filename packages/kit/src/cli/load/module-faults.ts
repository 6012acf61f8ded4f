import type { App } from '../../app/declare/module.ts';
import type { CheckFault } from '../../app/declare/check.ts';

/** What the modules' own checks find, in the order of the modules. */
export async function moduleFaults(app: App): Promise<{ readonly module: string; readonly fault: CheckFault }[]> {
  const found: { readonly module: string; readonly fault: CheckFault }[] = [];
  for (const { name, checks } of app.modules) {
    for (const check of checks ?? []) found.push(...(await check.run(app)).map((fault) => ({ module: name, fault })));
  }
  return found;
}
