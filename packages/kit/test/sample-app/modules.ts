import type { Module } from '../../src/app/declare/module.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { itemsModule } from './items.ts';

/** The cheapest password hash there is: the tests ask how requests are refused, not how passwords are kept. */
export const sampleModules: readonly Module[] = [itemsModule, accounts({ passwordCost: { logN: 1, r: 1, p: 1 } })];
