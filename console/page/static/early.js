// Runs before the first paint, so that a page that was switched to dark does not flash in white. Everything else is in modules.
(function () {
  'use strict';
  try {
    const theme = localStorage.getItem('interlock.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // No storage, no memory: the system's own choice is right then.
  }
})();
