package mutants

// fences are bugs of the resource's side.
func fences() []Mutant {
	return []Mutant{
		{
			ID: "M11", Bug: "the fence is on writes only",
			Edits: []Edit{
				{
					For: []Where{FenceModel}, File: "internal/fencemodel/rules.go", Old: "CheckReads: true,",
					New: "CheckReads: !isMutant(\"M11\"),",
				},
				{
					For: []Where{Torture}, File: "torture/register/server.go", Old: "\tif e.Fenced {\n\t\terr =",
					New: "\tif e.Fenced && (e.Write || !isMutant(\"M11\")) {\n\t\terr =",
				},
			},
			Checks: []Check{
				modelOfTheFence("TestSound_WithGrowingTokens_HasNoFault", "a stale effect", "stale effect: "),
				tortured("K2", "redis", "stop", "8s"),
			},
		},
		{
			ID: "M12", Bug: "the fence lets another holder with an equal token pass",
			Edits: []Edit{
				{
					File: "fence/marks.go", Old: "|| m == other }",
					New: "|| m == other || isMutant(\"M12\") && m.token == other.token }",
				},
				{
					File: "internal/fencemodel/rules.go", Old: "Nonces: true,",
					New: "Nonces: !isMutant(\"M12 in the model\"),", As: "M12 in the model",
				},
			},
			Checks: []Check{
				{
					Name: "package fence against its model", Where: FenceModel,
					Test: "^TestSoundRules_AreThoseOfPackageFence$",
					Says: "package fence says true, the model false",
				},
				withSwitch("M12 in the model",
					modelOfTheFence("TestSound_WithTokensThatGoBack_HasNoFault", "an unstable read",
						"unstable read: ")),
			},
		},
	}
}

func modelOfTheFence(test, finds, says string) Check {
	return Check{Name: "model of the fence: " + finds, Where: FenceModel, Test: "^" + test + "$", Says: says}
}

func withSwitch(name string, c Check) Check {
	c.Switch = name
	return c
}
