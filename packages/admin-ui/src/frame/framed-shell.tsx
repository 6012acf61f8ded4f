import { useEffect, type ReactNode } from 'react';
import { hashOf } from '../routing/location.ts';
import { useLocation } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import { LeaveDialog } from '../shell/leave-dialog.tsx';
import css from './frame.module.css';
import { tellHeight } from './host.ts';

/** The page around the frame has a heading, a menu and a login of its own. */
export function FramedShell({ children }: { readonly children: ReactNode }) {
  const { site } = useSession();
  const { place } = useLocation();
  const { origins } = site.login.portal ?? { origins: [] };
  useEffect(() => tellHeight(origins), [origins]);
  return (
    <div className={css['frame']}>
      {site.resources.length > 1 && (
        <nav aria-label="Screens" className={css['pages']}>
          {site.resources.map(({ name, label }) => (
            <a
              key={name}
              href={hashOf({ page: 'list', resource: name })}
              aria-current={'resource' in place && place.resource === name ? 'page' : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
      )}
      <main>{children}</main>
      <LeaveDialog />
    </div>
  );
}
