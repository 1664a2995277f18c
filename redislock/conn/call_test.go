package conn

import "testing"

// What a script is made of is put together when somebody asks for it, and not in every program that knows of it.
func TestLateScript_IsReadWhenItIsFirstAskedFor(t *testing.T) {
	reads := 0
	late := NewLateScript(func() string {
		reads++
		return "return 'x'"
	})
	if reads != 0 {
		t.Error("the script was read before anybody asked")
	}
	now := NewScript("return 'x'")
	for range 2 {
		if late.Source() != now.Source() || late.SHA() != now.SHA() || len(late.SHA()) != 40 {
			t.Errorf("read later, it is another: %s and %s", late.SHA(), now.SHA())
		}
	}
	if reads != 1 {
		t.Errorf("it was read %d times", reads)
	}
}
