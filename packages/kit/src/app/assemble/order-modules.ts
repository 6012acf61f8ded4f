import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import type { Module } from '../declare/module.ts';

/** Modules in the order they start: what a module requires, or names in `after`, comes before it; otherwise as given. Reversed, the order they stop. */
export function orderModules(modules: readonly Module[]): { readonly ordered: readonly Module[]; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  const byName = new Map<string, Module>();
  for (const module of modules) {
    if (byName.has(module.name)) faults.push({ id: 'E006', message: `Two modules are named "${module.name}".`, hint: 'Install it once.' });
    byName.set(module.name, module);
  }
  const ordered: Module[] = [];
  const state = new Map<Module, 'visiting' | 'done'>();
  const visit = (module: Module, trail: readonly string[]): void => {
    if (state.get(module) === 'done') return;
    if (state.get(module) === 'visiting') {
      faults.push({
        id: 'E006',
        message: `Modules depend on each other in a cycle: ${[...trail, module.name].join(' → ')}.`,
        hint: 'Remove one of these names from requires or after.',
      });
      return;
    }
    state.set(module, 'visiting');
    for (const name of module.requires ?? []) {
      const required = byName.get(name);
      if (required !== undefined) visit(required, [...trail, module.name]);
      else {
        const hint = didYouMean(name, [...byName.keys()]).trim() || `Add ${name}() to modules.`;
        faults.push({ id: 'E006', message: `The module "${module.name}" requires "${name}", which is not installed.`, hint });
      }
    }
    for (const name of module.after ?? []) {
      const earlier = byName.get(name);
      if (earlier !== undefined) visit(earlier, [...trail, module.name]);
    }
    state.set(module, 'done');
    ordered.push(module);
  };
  for (const module of modules) visit(module, []);
  return { ordered, faults };
}
