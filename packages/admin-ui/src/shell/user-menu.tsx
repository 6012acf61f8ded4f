import { Suspense, useState } from 'react';
import { later } from '../later.ts';
import { UserButton } from './user-button.tsx';

const OpenUserMenu = later(async () => (await import('./open-user-menu.tsx')).OpenUserMenu);

/** The menu itself comes when it is first opened. */
export function UserMenu() {
  const [isWanted, setWanted] = useState(false);
  const closed = <UserButton aria-haspopup="menu" onClick={() => setWanted(true)} />;
  return isWanted ? (
    <Suspense fallback={closed}>
      <OpenUserMenu />
    </Suspense>
  ) : (
    closed
  );
}
